"""Lists of what a release has from others (SBOM), one for each kind of package, each by the tool that resolves them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools.release import versions

CYCLONEDX = "0.5.9"
"""Version of cargo-cyclonedx."""
NPM = "npm@10.9.9"
"""The last for Debian 12's node, whose own npm writes no such list."""


def _run(root: Path, *command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=root, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"release: {' '.join(map(str, command))} failed")
    return done.stdout


def python(root: Path) -> str:
    """What pip installs beside the wheel, all extras, at the versions of uv.lock; the wheel itself names ranges."""
    export = ("export", "--quiet", "--locked", "--no-default-groups", "--all-extras", "--format", "cyclonedx1.5")
    return _run(root, root / "scripts/uv", *export, "--preview-features", "sbom-export")


def crates(root: Path, crate: str) -> str:
    """The crates of one binary, on every platform, and those that only building it needs."""
    tool = root / "build" / "cargo"
    install = ("install", "--quiet", "--locked", "--root", tool, "--version", CYCLONEDX, "cargo-cyclonedx")
    _run(root, root / "scripts/cargo", *install)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        archive = subprocess.run(["git", "archive", "HEAD", "switch"], cwd=root, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "--extract", "--directory", folder], input=archive, check=True)
        describe = ("--manifest-path", folder / "switch/Cargo.toml", "--format", "json", "--spec-version", "1.5", "--target", "all", "-qq")
        path = f"{tool / 'bin'}:{os.environ['PATH']}"
        _run(root, "env", f"PATH={path}", root / "scripts/cargo", "cyclonedx", *describe, "--override-filename", "list")
        return (folder / "switch" / crate / "list.json").read_text(encoding="utf-8").replace(str(folder), "/fairlane")


def page(root: Path) -> str:
    """What the browser page has from npm."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "page"
        folder.mkdir()
        shutil.copy(root / "web/package-lock.json", folder)
        package = json.loads((root / "web/package.json").read_text(encoding="utf-8")) | {"version": versions.version(root)}
        (folder / "package.json").write_text(json.dumps(package), encoding="utf-8")
        return _run(folder, "npx", "--yes", NPM, "sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--omit", "dev")


KINDS: dict[str, Callable[[Path], str]] = {
    "python": python,
    "programs": lambda root: crates(root, "programs"),
    "module": lambda root: crates(root, "python"),
    "page": page,
}


def file(kind: str, version: str) -> str:
    return f"fairlane-{version}-{kind}.cdx.json"


def faults(text: str) -> list[str]:
    """Where a list is not as the schema of its version of CycloneDX says."""
    version = SchemaVersion[f"V{json.loads(text)['specVersion'].replace('.', '_')}"]
    return [str(error) for error in [JsonStrictValidator(version).validate_str(text)] if error]


def repeatable(text: str, commit: str) -> str:
    """The tools put a random number and the time of their run; here both come from the commit."""
    bom: dict[str, Any] = json.loads(text)
    bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, f"{commit}/{bom['metadata']['component']['name']}").urn
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    bom["metadata"]["timestamp"] = made.strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(bom, indent=1, ensure_ascii=False) + "\n"
