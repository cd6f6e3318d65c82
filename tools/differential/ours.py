"""Our switch as a process: `fairlane-replay`, whose protocol switch/node/stf/src/replay.rs describes."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.bmv2.packets import Packet

_WORD = struct.Struct("<I")
_HEAD = struct.Struct("<II")


class Ours:
    def __init__(self, replay: Path, program_json: Path, setup: Path) -> None:
        self._process = subprocess.Popen([replay, program_json, setup], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def exchange(self, packets: Sequence[Packet]) -> list[list[Packet]]:
        """What comes out for each packet."""
        answer = self._ask(b"".join(_HEAD.pack(port, len(data)) + data for port, data in packets))
        results, at = [], 0
        for _ in packets:
            (count,) = _WORD.unpack_from(answer, at)
            at += 4
            out = []
            for _ in range(count):
                port, length = _HEAD.unpack_from(answer, at)
                out.append((port, answer[at + 8 : at + 8 + length]))
                at += 8 + length
            results.append(out)
        return results

    def state(self) -> dict[str, list[int]]:
        """`register NAME` and `counter NAME` with their values; a counter's are packets, bytes by turns."""
        lines = [line.split() for line in self._ask(b"").decode().splitlines()]
        return {f"{kind} {name}": [int(v, 0) for v in values] for kind, name, *values in lines}

    def _ask(self, batch: bytes) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(_WORD.pack(len(batch)) + batch)
        stdin.flush()
        head = stdout.read(4)
        if len(head) != 4:
            raise RuntimeError(f"fairlane-replay ended with status {self._process.wait(10)}")
        return stdout.read(_WORD.unpack(head)[0])

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Ours:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
