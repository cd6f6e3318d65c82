"""The browser page of `make web` as one archive: the same folder gives the same bytes."""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path


def file(version: str) -> str:
    return f"fairlane-page-{version}.zip"


def pack(folder: Path, out: Path) -> None:
    """Puts `folder` into a folder of the archive's own name, for any web server."""
    if not (folder / "index.html").is_file():
        raise SystemExit(f"release: {folder} has no page: run 'make web', which builds it")
    date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(f"{out.stem}/{path.relative_to(folder).as_posix()}", date)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)
