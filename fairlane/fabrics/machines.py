"""A network over the ranks of MPI: each simulates its part (`partition_plan`), and the first one gets all records. Ranks share no files: what the others have written comes to the first by MPI."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairlane.fabrics.partition_plan import Plan
from fairlane.fabrics.partitions import Cost, Done, Part, cost_of, cpu_s
from fairlane.fabrics.ranks import NEVER, Ranks

if TYPE_CHECKING:
    from fairlane.native import Network

_Result = TypeVar("_Result")
_PIECE_BYTES, _LEAST_BYTES = 1 << 26, 1 << 16
"""Of records that come to the first rank at once: from all of them, and from each of many."""
_PCAP_HEAD_BYTES = 24
_Piece = list[tuple[str, str, bytes]]
"""Of files: of which folder, by its name in `run`; name; what follows."""


def run(
    ranks: Ranks, network: Network, plan: Plan, switches: Sequence[str], work: Callable[[Part], _Result], folders: Mapping[str, Path]
) -> Done[_Result] | None:
    """Calls `work` in each rank, with the network as its part. Files that it writes into the folders are in the first rank's folders then; None in the others. folders: by names that all ranks know."""
    before = {path for folder in folders.values() for path in _files(folder) if not _has_frames(path)}
    used = cpu_s()
    network.partition(ranks.own, list(plan.homes), ranks)
    result = work(Part(ranks.own, plan, {name: number for number, name in enumerate(switches)}))
    cost = cost_of(network, plan.homes.count(ranks.own), cpu_s() - used)
    _, theirs = ranks.exchange(NEVER, [(0, pickle.dumps((result, cost)))] if ranks.own else [])
    if ranks.own:
        written = {name: [path for path in _files(folder) if path not in before or _has_frames(path)] for name, folder in folders.items()}
        _collect(ranks, pieces(written, max(_LEAST_BYTES, _PIECE_BYTES // ranks.count)), {})
        return None
    _collect(ranks, iter(()), folders)
    said: list[tuple[Any, Cost]] = [pickle.loads(content) for _, content in theirs]
    return Done([result, *(one for one, _ in said)], [cost, *(one for _, one in said)])


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def _has_frames(path: Path) -> bool:
    """A capture is there from the beginning in all ranks, and gets frames in the one that has its end."""
    return path.suffix == ".pcap" and path.stat().st_size > _PCAP_HEAD_BYTES


def pieces(written: Mapping[str, Sequence[Path]], most: int) -> Iterator[_Piece]:
    """All files, in pieces of so many bytes."""
    piece: _Piece = []
    left = most
    for name, paths in written.items():
        for path in paths:
            with path.open("rb") as file:
                first = True
                while (content := file.read(left)) or first:
                    first = False
                    piece.append((name, path.name, content))
                    left -= len(content)
                    if left <= 0:
                        yield piece
                        piece, left = [], most
    if piece:
        yield piece


def _collect(ranks: Ranks, pieces: Iterator[_Piece], folders: Mapping[str, Path]) -> None:
    """Sends the pieces to the first rank, which appends them to files in `folders`, until no rank has any."""
    begun: set[Path] = set()
    while True:
        piece = next(pieces, None)
        least, theirs = ranks.exchange(NEVER if piece is None else 0, [] if piece is None else [(0, pickle.dumps(piece))])
        for _, content in theirs:
            for name, file, text in pickle.loads(content):
                path = folders[name] / file
                with path.open("ab" if path in begun else "wb") as opened:
                    opened.write(text)
                begun.add(path)
        if least == NEVER:
            return
