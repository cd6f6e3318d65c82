"""What a study keeps of each run beside its measures: the record of packets, captures, tables, raw records (`fairlane.studies.study.Keep`)."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

from fairlane.errors import RunFailed
from fairlane.fabrics.packets import PacketRecord
from fairlane.fabrics.virtual_fabric import Options
from fairlane.results import csv_tables, series
from fairlane.results.series import Series
from fairlane.results.shares import ShareTable
from fairlane.studies.study import Keep

KEPT_RUNS = "kept"
"""Of a study's folder, the part with a folder for each run."""


class Keeping:
    """Of one run. Its folder appears when all is in it; one that was there, of other inputs, goes."""

    def __init__(self, keep: Keep, folder: Path) -> None:
        """RunFailed: the study's folder is not on this machine."""
        study = folder.parent.parent.parent
        if not study.is_dir():
            raise RunFailed(f"[keep]: no folder {study} here: workers on other machines need the study's folder on a shared disk")
        self._keep = keep
        self._folder = folder
        self._work = folder.with_name(f".{folder.name}.unfinished")
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(parents=True)

    def begin(self, options: Options) -> Options:
        """The options of a run that leaves these files."""
        files, packets = self._keep.files, self._keep.packets
        return dataclasses.replace(
            options,
            pcap=self._work / "captures" if "captures" in files else None,
            trace=self._work / "trace.csv" if "trace.csv" in files else None,
            packets=None if packets is None else PacketRecord(self._work / packets, self._keep.links),
        )

    def end(self, recorded: Series, raw: Path) -> None:
        """raw: the folder of the run's records."""
        if "tables" in self._keep.files:
            for name, table in series.tables(recorded, ShareTable(recorded)).items():
                with (self._work / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                    csv_tables.write(file, table)
        if "records" in self._keep.files:
            shutil.copytree(raw, self._work / "records")
        shutil.rmtree(self._folder, ignore_errors=True)
        self._work.rename(self._folder)
