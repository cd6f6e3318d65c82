"""What a control plane records, on disk as it happens."""

from __future__ import annotations

import csv
import dataclasses
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

_RECORDS = "control.jsonl"


class Log:
    """`control.jsonl`, once there is a record, and a CSV file for each kind of `Engine.tables`. A controller that is started again goes on writing."""

    def __init__(self, folder: Path, tables: Mapping[type, str], flush: bool) -> None:
        """flush: whoever reads the files finds all that was recorded."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._flush = flush
        self._records: TextIO | None = None
        self._tables = {kind: _Table(folder / name, kind) for kind, name in tables.items()}

    def record(self, fields: Mapping[str, object]) -> None:
        if self._records is None:
            self._records = (self._folder / _RECORDS).open("a", encoding="utf-8", newline="\n")
        self._records.write(json.dumps(fields) + "\n")
        if self._flush:
            self._records.flush()

    def rows(self, rows: Sequence[Any]) -> None:
        if rows:
            table = self._tables[type(rows[0])]
            table.append(rows)
            if self._flush:
                table.file.flush()

    def close(self) -> None:
        for file in (*(table.file for table in self._tables.values()), *([] if self._records is None else [self._records])):
            file.close()


class _Table:
    def __init__(self, path: Path, kind: type) -> None:
        names = [field.name for field in dataclasses.fields(kind)]
        # `dataclasses.astuple` copies each value, which took as long as all else in virtual time.
        self._values: Callable[[Any], tuple[object, ...]] = operator.attrgetter(*names)
        self.file = path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self.file, lineterminator="\n")
        if self.file.tell() == 0:
            self._writer.writerow(names)
            self.file.flush()

    def append(self, rows: Sequence[Any]) -> None:
        self._writer.writerows(map(self._values, rows))
