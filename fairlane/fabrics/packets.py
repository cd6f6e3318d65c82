"""The record of packets: a row for each packet's stay in a queue of a switch, as CSV or as Parquet (docs/measures.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.inputs import schema
from fairlane.topologies.model import Topology

PARQUET = ".parquet"
_BLOCK_BYTES = 8 << 20
"""Of CSV that is turned into Parquet at once."""
_INTEGERS = ("queue", "packet", "bytes", "queue_packets", "queue_bytes", "ecn")
_TEXTS = ("link", "flow", "part", "drop")


@dataclass(frozen=True)
class PacketRecord:
    """path: a new file; as Parquet if its name ends so. links: directions of links, "s1->s2", whose queues are recorded; none: those of all that leave a switch."""

    path: Path
    links: Sequence[str] = ()

    def check(self, topology: Topology) -> None:
        """Refusal for a link that no switch sends on, and for Parquet without pyarrow."""
        self.ports(topology)
        if self.path.suffix == PARQUET and find_spec("pyarrow") is None:
            raise Refusal(f"--packets {self.path}: pip install 'fairlane[parquet]' for Parquet, or name a .csv file.", CANNOT_RUN_HERE)

    def ports(self, topology: Topology) -> list[tuple[str, int]] | None:
        """Switch and port number of each link; None for all."""
        known = {f"{p.node}->{p.peer}": (p.node, p.number) for switch in topology.switches for p in topology.ports()[switch]}
        for link in self.links:
            if link not in known:
                raise Refusal(f"--packets-of {link}: no switch sends on such a link{schema.nearest(link, known)}; write it as 's1->s2'.")
        return [known[link] for link in self.links] or None

    @property
    def written(self) -> Path:
        """Where the network writes it, as CSV."""
        return self.path.with_name(f".{self.path.name}.csv") if self.path.suffix == PARQUET else self.path

    def finish(self) -> None:
        """Turn the record into what was asked for, piece by piece."""
        if self.path.suffix != PARQUET:
            return
        import pyarrow as pa
        from pyarrow import csv, parquet

        types = {name: pa.int64() for name in _INTEGERS} | {name: pa.string() for name in _TEXTS}
        kinds = types | {name: pa.float64() for name in ("arrival_s", "departure_s", "wait_s")}
        convert = csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
        with (
            csv.open_csv(self.written, csv.ReadOptions(block_size=_BLOCK_BYTES), convert_options=convert) as rows,
            parquet.ParquetWriter(self.path, rows.schema) as file,
        ):
            for piece in rows:
                file.write_batch(piece)
        self.written.unlink()
