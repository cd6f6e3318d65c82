"""One program on both switches, batch after batch, until something differs."""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tools.bmv2 import stf
from tools.bmv2.packets import Packet
from tools.bmv2.process import Bmv2, SwitchDied
from tools.bmv2.program import Program
from tools.differential import entries
from tools.differential.ours import Ours
from tools.differential.stream import Stream
from tools.differential.suite import Case
from tools.differential.walk import Walker

# A packet that has not come out after so long is lost; generous, since machines may be busy.
LOST_S = 30.0
_NOT_SETUP = {"packet", "expect", "no_packet", "check_counter", "wait", "remove", "counter_read", "register_read", "mirroring_get"}


class Differs(Exception):
    """`batch` packets of batch `number` did not leave both switches alike, or the arrays differ in the end."""

    def __init__(self, what: str, number: int, packets: Sequence[Packet]) -> None:
        super().__init__(what)
        self.number = number
        self.packets = packets


@dataclass
class Result:
    packets: int = 0
    out: int = 0
    dropped: int = 0
    reordered: int = 0
    cells: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """What is needed to play one program's packets, on fresh switches as often as one likes. `our_setup` is for tests: other entries
    for our switch than for BMv2. `bmv2_json` is the program that BMv2 runs when it is another than ours: another compiler's."""

    case: Case
    program_json: Path
    setup: Path
    replay: Path
    stream: Stream
    program: Program
    our_setup: Path | None = None
    bmv2_json: Path | None = None

    @classmethod
    def prepare(cls, case: Case, program_json: Path, folder: Path, replay: Path, seed: int, bmv2_json: Path | None = None) -> Comparison:
        program = Program.load(program_json)
        walker = Walker(program)
        samples = [packet for path in case.all_samples for packet in stf.packets_of(path.read_text(encoding="utf-8"))]
        for _, data in samples:
            walker.take_apart(data)
        lines = [line for path in case.setups for line in _commands(path.read_text(encoding="utf-8"))]
        other = Program.load(bmv2_json) if bmv2_json else program
        # A compiler may leave out a table that has no effect.
        absent = {table.name for table in program.tables} - {table.name for table in other.tables}
        drawn_for = replace(case, fixed=(*case.fixed, *absent))
        lines += entries.draw(program, other, walker, random.Random(f"{case.name}/{seed}/entries"), drawn_for, lines)
        setup = folder / f"{case.name}.setup.stf"
        setup.write_text("\n".join(lines) + "\n", encoding="utf-8")
        stream = Stream(program, walker, samples, f"{case.name}/{seed}")
        with Ours(replay, program_json, setup) as ours:
            stream.prefer(lambda packets: [bool(out) for out in ours.exchange(packets)])
        return cls(case, program_json, setup, replay, stream, program, bmv2_json=bmv2_json)

    def fresh(self, lost_s: float = LOST_S) -> Both:
        return Both(self, lost_s)

    def run(self, packets: int, progress: Callable[[Result], None], lost_s: float = LOST_S) -> Result:
        """All packets; raises Differs, or SwitchDied."""
        result = Result()
        begin = time.monotonic()
        with self.fresh(lost_s) as both:
            sizes = [min(self.case.batch, packets - start) for start in range(0, packets, self.case.batch)]
            # The next batch is made while BMv2 works on this one.
            waiting = deque([self.stream.batch(0, sizes[0])] if sizes else [])

            def make(first: int, sizes: Sequence[int]) -> None:
                waiting.extend(self.stream.batch(first, size) for size in sizes)

            for number in range(len(sizes)):
                following = sizes[number + 1 : number + 2]
                both.compare(number, waiting.popleft(), result, partial(make, number + 1, following))
                result.seconds = time.monotonic() - begin
                progress(result)
            both.compare_state(len(sizes), result)
        return result


class Both:
    """Our switch and BMv2 with the same program and entries."""

    def __init__(self, comparison: Comparison, lost_s: float = LOST_S) -> None:
        self.lost_s = lost_s
        self.case = comparison.case
        self.program = comparison.program
        self.ours = Ours(comparison.replay, comparison.program_json, comparison.our_setup or comparison.setup)
        try:
            json = comparison.bmv2_json or comparison.program_json
            self.bmv2 = Bmv2(json)
            try:
                stf.play(self.bmv2, Program.load(json), comparison.setup.read_text(encoding="utf-8"))
            except BaseException:
                self.bmv2.close()
                raise
        except BaseException:
            self.ours.close()
            raise

    def compare(self, number: int, batch: Sequence[Packet], result: Result, meanwhile: Callable[[], object] = bool) -> None:
        """Sends a batch through both; raises Differs unless the same packets come out of the same ports."""
        try:
            self._compare(number, batch, result, meanwhile)
        except (OSError, SwitchDied) as error:
            self.bmv2.settle_death()
            raise Differs(f"BMv2 ended: {error}", number, batch) from error

    def _compare(self, number: int, batch: Sequence[Packet], result: Result, meanwhile: Callable[[], object]) -> None:
        self.bmv2.packets.send(batch)
        answers = self.ours.exchange(batch)
        meanwhile()
        wanted = [packet for answer in answers for packet in answer]
        arrived = self.bmv2.packets.wait(len(wanted), self.lost_s)
        self.bmv2.packets.settle(0)
        got = self.bmv2.packets.take()
        ours, theirs = by_port(wanted), by_port(got)
        if ours != theirs:
            if not arrived:
                self.bmv2.check()
            if {p: sorted(v) for p, v in ours.items()} != {p: sorted(v) for p, v in theirs.items()} or self.case.order == "port":
                raise Differs(difference(ours, theirs), number, batch)
            result.reordered += 1
        result.packets += len(batch)
        result.out += len(wanted)
        result.dropped += sum(not answer for answer in answers)

    def compare_state(self, number: int, result: Result) -> None:
        """Registers and indirect counters, once nothing is under way any more."""
        self.bmv2.packets.settle(0.3)
        late = self.bmv2.packets.take()
        if late:
            raise Differs(f"BMv2 sent {len(late)} packets more, the first to port {late[0][0]}: {late[0][1].hex()}", number, [])
        ours = self.ours.state()
        for name, values in ours.items():
            kind, array = name.split(" ", 1)
            if any(array.endswith(i) for i in self.case.ignored):
                continue
            if kind == "register":
                # BMv2 says no more than 63 bits of a cell.
                theirs = self.bmv2.runtime.register_read_all(array)
                values = [min(v, (1 << 63) - 1) for v in values]
            else:
                theirs = [v for i in range(len(values) // 2) for v in self.bmv2.runtime.counter_read(array, i)]
            if values != theirs:
                at = next(i for i, (a, b) in enumerate(zip(values, theirs, strict=True)) if a != b)
                raise Differs(f"{name}, value {at}: ours {values[at]}, BMv2 {theirs[at]}", number, [])
            result.cells += len(values)

    def __enter__(self) -> Both:
        return self

    def __exit__(self, *_: object) -> None:
        self.ours.close()
        self.bmv2.close()


def by_port(packets: Iterable[Packet]) -> dict[int, list[bytes]]:
    ports: dict[int, list[bytes]] = defaultdict(list)
    for port, data in packets:
        ports[port].append(data)
    return ports


def difference(ours: dict[int, list[bytes]], theirs: dict[int, list[bytes]]) -> str:
    """The first port at which they differ, in words."""
    for port in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(port, []), theirs.get(port, [])
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            mine = a[at].hex() if at < len(a) else "nothing"
            other = b[at].hex() if at < len(b) else "nothing"
            return f"port {port}, packet {at + 1} of {len(a)} (BMv2: {len(b)}):\n  ours {mine}\n  BMv2 {other}"
    return "no difference"


def _commands(text: str) -> list[str]:
    return [
        line.strip()
        for line in text.splitlines()
        if line.strip() and line.split()[0].lower() not in _NOT_SETUP and not line.strip().startswith("#")
    ]
