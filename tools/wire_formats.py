"""Makes docs/wire-formats.md and tools/wireshark/fairlane.lua from hosts/wire/formats.toml.

python tools/wire_formats.py           write both
python tools/wire_formats.py --check   exit code 1 when one of them is out of date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairlane.hosts.wire.formats import Field, Format, formats_of
from fairlane.inputs.located_toml import tomllib

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = ROOT / "hosts/wire/formats.toml"
DOCUMENT = ROOT / "docs/wire-formats.md"
TEMPLATE = ROOT / "tools/wireshark/fairlane.lua.in"
DISSECTOR = ROOT / "tools/wireshark/fairlane.lua"
MARK = "-- @formats@\n"

INTRODUCTION = """# Wire formats

`python tools/wire_formats.py` makes this page from `hosts/wire/formats.toml`: change that file, not this page.

Everything around these headers is standard: IPv4 or IPv6, UDP, RTP data on an even port P, RTCP on P + 1 (RFC 3550). Both ends of a flow use
the same ports. In place of acknowledgements flows may have the congestion control feedback of RFC 8888 ([its clauses](clauses/rfc8888.md)). All fields are unsigned integers, most significant bit first. Sender control packets also carry the IPv4 router alert
option (RFC 2113) and UDP checksum 0 ([architecture.md](architecture.md), "ALS on the wire"); over [IPv6](ipv6.md) a hop-by-hop header with the option of RFC 2711, and a checksum.

To read the headers, `wireshark -X lua_script:tools/wireshark/fairlane.lua capture.pcap` shows the fields as `fairlane.*`, on any port, without
"Decode As". Wireshark 4.4 and later load no script for root. In Python, `import fairlane.scapy_layers` gives scapy the classes {classes}.
"""


def load() -> dict[str, Format]:
    return formats_of(tomllib.loads(DESCRIPTION.read_text(encoding="utf-8")))


# ---------------------------------------------------------------------------------------------------------------------- Markdown


def markdown(formats: dict[str, Format]) -> str:
    parts = [INTRODUCTION.format(classes=", ".join(f"`{class_name(name)}`" for name in formats))]
    for form in formats.values():
        sizes = [form.least_bytes, *((f.offset_bits + f.bits) // 8 for f in form.fields if f.optional)]
        size = f"{', '.join(map(str, sizes[:-1]))} or {sizes[-1]} bytes" if len(sizes) > 1 else f"{sizes[0]} bytes"
        parts += [f"\n## {form.title}\n\n{form.summary}\n\nWhere: {form.place}. {size}.\n\n```\n{picture(form)}```\n"]
        parts += ["\n| field | bits | unit | meaning |\n|---|---|---|---|\n"]
        parts += [_row(field) for field in form.fields]
    return "".join(parts)


def _row(field: Field) -> str:
    notes = field.meaning
    if field.value is not None:
        notes += f"; always {field.value}"
    if field.flags is not None:
        named = "; ".join(f"bit {flag.bit} `{flag.name}`: {flag.meaning}" for flag in field.flags)
        notes += f"{': ' + named + '; other bits' if named else ': all bits'} are sent as 0 and ignored on receipt"
    if field.optional:
        notes += "; missing if the packet ends before it"
    return f"| `{field.name}` | {field.bits} | {field.unit or ''} | {notes} |\n"


def picture(form: Format) -> str:
    """As RFCs draw headers: 32 bits a line."""
    ruler = " " + " ".join(f"{bit // 10 if bit % 10 == 0 else ' '}" for bit in range(32)).rstrip()
    lines = [ruler, " " + " ".join(str(bit % 10) for bit in range(32))]
    cells: list[list[tuple[str, int]]] = [[]]
    room = 32
    for field in form.fields:
        left, first = field.bits, True
        while left:
            part = min(left, room)
            cells[-1].append((field.name if first else "...", part))
            left, room, first = left - part, room - part, False
            if room == 0:
                cells.append([])
                room = 32
    rows = [row for row in cells if row]

    def border(row: list[tuple[str, int]]) -> str:
        return "+" + "".join("-" * (2 * bits - 1) + "+" for _, bits in row)

    for number, row in enumerate(rows):
        lines.append(_merged(border(rows[number - 1]) if number else "", border(row)))
        lines.append("|" + "".join(text[: 2 * bits - 1].center(2 * bits - 1) + "|" for text, bits in row))
    lines.append(border(rows[-1]))
    return "".join(line.rstrip() + "\n" for line in lines)


def _merged(above: str, below: str) -> str:
    """The border between two rows has the corners of both."""
    width = max(len(above), len(below))
    pairs = zip(above.ljust(width), below.ljust(width))
    return "".join("+" if "+" in pair else "-" if "-" in pair else " " for pair in pairs)


# --------------------------------------------------------------------------------------------------------------------------- Lua


def class_name(name: str) -> str:
    """Of a format's scapy class: Stamp, Ack, AlsfLayer."""
    return "".join(part.capitalize() for part in name.split("_"))


def lua(formats: dict[str, Format]) -> str:
    """The dissector: the template with the formats as tables."""
    lines = []
    for form in formats.values():
        lines.append(f"formats.{form.name} = {{ title = {_text(form.title)}, bytes = {form.bytes}, least = {form.least_bytes},\n")
        for field in form.fields:
            entry = f"name = {_text(field.name)}, at = {field.offset_bits}, bits = {field.bits}, meaning = {_text(field.meaning)}"
            if field.unit is not None:
                entry += f", unit = {_text(field.unit)}"
            if field.value is not None:
                entry += f", value = {field.value}"
            if field.flags:
                named = ", ".join(
                    f"{{ bit = {flag.bit}, name = {_text(flag.name)}, meaning = {_text(flag.meaning)} }}" for flag in field.flags
                )
                entry += f", flags = {{ {named} }}"
            lines.append(f"  {{ {entry} }},\n")
        lines.append("}\n")
    before, mark, after = TEMPLATE.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"{TEMPLATE}: has no line {MARK.strip()!r}")
    return before + "".join(lines) + after


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a file is not up to date")
    args = parser.parse_args(argv)
    formats = load()
    stale = []
    for path, text in ((DOCUMENT, markdown(formats)), (DISSECTOR, lua(formats))):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
            if not args.check:
                path.write_text(text, encoding="utf-8")
    if args.check and stale:
        print(
            f"not made from {DESCRIPTION.relative_to(ROOT)}: {', '.join(map(str, stale))}; run python tools/wire_formats.py",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
