"""`fairlane new scheme NAME`: a folder with a working queue management, as a starting point for your own."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from fairlane import probes
from fairlane.errors import ProgramRefused, Refusal
from fairlane.fabrics import targets
from fairlane.schemes import chosen, registry
from fairlane.schemes.base import Scheme

_DESCRIPTION = '''\
"""TITLE: describe here what it does, and where it comes from: paper, section, equations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane.schemes.base import Counter, Entry, Parameters, Scheme, parameter


@dataclass(frozen=True)
class CLASS(Parameters):
    """Keys of an experiment's file, each with its unit in the name, its default and its range.

    limit_packets: a packet that leaves so many behind in the queue, or more, may be dropped. probability: of that.
    ecn: packets of an ECN-capable transport are marked instead. Leave it out if the scheme cannot mark.
    """

    limit_packets: int = parameter(10, 1, 1_000_000, "packets")
    probability: float = parameter(0.02, 0, 1)
    ecn: bool = False

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        """The table entries of a port: real numbers in, integers of MODULE.p4 out."""
        values = {"limit_packets": self.limit_packets, "chance": round(self.probability * 2**32), "marking": int(self.ecn)}
        yield Entry("AlsEgress.MODULE.parameters", "set_parameters", values)


SCHEME = Scheme(
    "NAME",
    "TITLE",
    CLASS,
    # Place: control of the P4 file, and the name of its instance (p4src/schemes/README.md).
    controls={"departure": "CLASS MODULE"},
    counters=(
        Counter("aqm_drops", ("AlsEgress.MODULE.drops",), cause="MODULE"),
        Counter("marks", ("AlsEgress.MODULE.marks",)),
    ),
)
'''

_P4 = """\
// TITLE per output port: describe here what it does.
//
//   egress:  CLASS  deq_qdepth --> send | mark | drop    a packet that egress drops uses no link time
//
//   drop, or mark, with a probability while `limit` packets or more are left behind
//
// Fixed point: the probability is an integer x 2^-32, of 33 bits.

control CLASS(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) drops;
    counter(PORTS, CounterType.packets_and_bytes) marks;  // instead of drops
    bit<32> limit = 0;
    bit<64> likely = 0;
    bool ecn = false;

    action set_parameters(bit<32> limit_packets, bit<64> chance, bit<1> marking) {
        limit = limit_packets;
        likely = chance;
        ecn = marking == 1;
    }

    // Ports without this scheme have no entry.
    table parameters {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_parameters; NoAction; }
        size = PORTS;
        default_action = NoAction();
    }

    apply {
        if (standard_metadata.egress_spec != DROP_PORT && parameters.apply().hit && (bit<32>)standard_metadata.deq_qdepth >= limit) {
            bit<32> index = (bit<32>)standard_metadata.egress_port;
            bit<32> draw;
            random(draw, 0, 0xFFFFFFFF);
            if ((bit<64>)draw < likely) {
                if (ecn && hdr.IP.isValid() && hdr.IP.diffserv & 3 != 0) {
                    hdr.IP.diffserv = hdr.IP.diffserv | 3;
                    marks.count(index);
                } else {
                    mark_to_drop(standard_metadata);
                    drops.count(index);
                }
            }
        }
    }
}
"""

_TEST = """\
# TITLE. Port 2 drops each packet, port 3 marks those of ECT(0), port 4 has no entry.
add ipv4_lpm hdr.ipv4.dst_address:0x0a000202/32 send(port:2, src_address:0x21, dst_address:0x22)
add ipv4_lpm hdr.ipv4.dst_address:0x0a000302/32 send(port:3, src_address:0x31, dst_address:0x32)
add ipv4_lpm hdr.ipv4.dst_address:0x0a000402/32 send(port:4, src_address:0x41, dst_address:0x42)
add AlsEgress.MODULE.parameters standard_metadata.egress_port:2 set_parameters(limit_packets:0, chance:0x100000000, marking:0)
add AlsEgress.MODULE.parameters standard_metadata.egress_port:3 set_parameters(limit_packets:0, chance:0x100000000, marking:1)

packet 1 00000000 000b0000 0000000a 08004502 001c0000 00004011 63cd0a00 01010a00 02021388 13890008 0000
check_counter AlsEgress.MODULE.drops(2) packets == 1
packet 1 00000000 000b0000 0000000a 08004502 001c0000 00004011 62cd0a00 01010a00 03021388 13890008 0000
expect 3 00000000 00320000 00000031 08004503 001c0000 00003f11 63cc0a00 01010a00 03021388 13890008 0000 $
check_counter AlsEgress.MODULE.marks(3) packets == 1
packet 1 00000000 000b0000 0000000a 08004502 001c0000 00004011 61cd0a00 01010a00 04021388 13890008 0000
expect 4 00000000 00420000 00000041 08004502 001c0000 00003f11 62cd0a00 01010a00 04021388 13890008 0000 $
"""


def scheme(name: str, root: Path) -> list[Path]:
    """Write the folder of a new scheme into `root`; the files. Refusal when the name is invalid or taken, or something is in the way; then nothing is
    written."""
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise Refusal(f"{name!r} cannot be a scheme: use lower-case letters and digits, words joined by hyphens, such as 'my-queue'")
    if name in registry.SCHEMES or name == registry.DROPTAIL:
        raise Refusal(f"there is a scheme {name!r} already: choose another name.")
    folder = root / name
    if folder.exists() or folder.is_symlink():
        raise Refusal(f"{folder}: exists already, and is not overwritten: choose another name, or remove it.")
    module = name.replace("-", "_")
    words = {
        "CLASS": "".join(part.capitalize() for part in module.split("_")),
        "NAME": name,
        "TITLE": name.replace("-", " ").replace("_", " ").capitalize(),
        "MODULE": module,
    }
    texts = {registry.DESCRIPTION: _DESCRIPTION, f"{name}.p4": _P4, f"{name}.stf": _TEST}
    try:
        folder.mkdir(parents=True)
        for file, text in texts.items():
            filled = re.sub("|".join(words), lambda found: words[found[0]], text)
            (folder / file).write_text(filled.replace(f"of {module}.p4 out", f"of {name}.p4 out"), encoding="utf-8", newline="\n")
        for file, text in chosen.alone(_read(folder)).items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
        _compile(folder)
    except (Refusal, OSError) as error:
        registry.SCHEMES.pop(name, None)
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise Refusal(f"{folder}: cannot be written: {error.strerror}") from error
        raise Refusal(
            f"{name!r} cannot be a scheme: a name that is made of it has another meaning: choose another name. {error}"
        ) from error
    return sorted(folder.iterdir())


def choose(folder: Path) -> list[Path]:
    """Write the two files by which als.p4 has the scheme of a folder, after a change of its description; the files. Refusal when the folder is no scheme, or is
    one of Fairlane's, whose packet tests compare them."""
    from fairlane import user_files

    scheme = registry.SCHEMES[user_files.use_scheme(folder)]
    try:
        for file, text in chosen.alone(scheme).items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise Refusal(f"{folder}: cannot be written: {error.strerror}") from error
    return [folder / chosen.HEADERS_NAME, folder / chosen.NAME]


def _read(folder: Path) -> Scheme:
    """Refusal: its name makes a word that Python or the description has already."""
    try:
        return registry.load(folder)
    except OSError:
        raise
    except Exception as error:  # any exception that the file raises while it is read
        raise Refusal(f"{registry.DESCRIPTION}: {type(error).__name__}: {error}") from error


def _compile(folder: Path) -> None:
    """Refusal: its name makes a word that P4 or als.p4 has already. Where no compiler is built, nothing is known of that."""
    with tempfile.TemporaryDirectory(prefix="fairlane-new-") as made:
        try:
            targets.compiler().compile(probes.source("p4src/als.p4"), Path(made), (chosen.MACRO,), (folder,))
        except ProgramRefused:
            raise
        except (Refusal, ImportError):
            return
