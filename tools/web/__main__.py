"""make web: Fairlane as a static folder, build/web, that any web server can carry.

    python -m tools.web --native FILE [--out build/web]

The folder holds Pyodide, our Python and its packages in one archive with the WebAssembly module `fairlane.native`, the memory of a Python that has
imported them (web/snapshot.mjs), and the page. Nothing is fetched from another host when it runs. `npm ci` in web/ and the module (scripts/web) come first.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from fairlane import skeleton, user_files
from fairlane.experiments import loader
from fairlane.labs.grading import labs, runner

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
PACKAGES = ("finsy", "protobuf", "rich", "typing-extensions")
"""Of uv.lock, what a run in virtual time imports."""
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide-lock.json", "python_stdlib.zip")
MODULE = "pyodide.asm.wasm"
"""Compressed by us: 3.6 MB in place of 9.6, whatever the server does."""
PYTHON, PLATFORM = "3.14", "pyemscripten_2026_0_wasm32"
"""Of Pyodide's version in web/package.json."""
OURS = (
    "controller",
    "experiments",
    "fabrics",
    "hosts",
    "inputs",
    "labs",
    "p4src",
    "results",
    "schemes",
    "studies",
    "topologies",
    "tutorials",
)
LEFT_OUT = ("__pycache__", "reference", "solution")
"""Folders that the page does not need, or that a student should not find there."""
OWN = "my-rate"
"""The algorithm that the page begins for its user."""
KINDS = (".py", ".toml", ".p4", ".csv", ".json", ".com", ".trace", ".md")
_LINE = re.compile(r"^([a-z0-9_.-]+)==", re.IGNORECASE)


def _locked(names: tuple[str, ...]) -> Iterator[str]:
    """The lines of a list of requirements for some packages of uv.lock, with their hashes."""
    wanted = False
    export = [str(ROOT / "scripts" / "uv"), "export", "--quiet", "--locked", "--no-emit-project", "--no-header", "--no-annotate"]
    for line in subprocess.run(export, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        if start := _LINE.match(line):
            wanted = start[1].lower() in names
        elif not line.startswith(" "):
            wanted = False
        if wanted:
            yield line


def wheels(folder: Path) -> list[Path]:
    """The packages' wheels for the page's Python, at the versions and hashes of uv.lock."""
    requirements = folder / "requirements.txt"
    requirements.write_text("\n".join(_locked(PACKAGES)) + "\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--python-version", PYTHON, "--platform", PLATFORM, "--dest", str(folder), "--requirement", str(requirements)]
    subprocess.run(command, check=True)
    found = sorted(folder.glob("*.whl"))
    if len(found) != len(PACKAGES):
        raise SystemExit(f"web: {len(found)} wheels for {len(PACKAGES)} packages: is one of {', '.join(PACKAGES)} not in uv.lock?")
    return found


def _is_needed(name: str) -> bool:
    """Of a wheel: not its tests, type stubs and lists of files."""
    if name.startswith("finsy/"):
        return (name.startswith("finsy/proto/") and name.endswith("_pb2.py")) or (name.endswith("__init__.py") and "proto/" in name)
    return not name.endswith((".pyi", ".proto", "/RECORD")) and "/tests/" not in name


def pack(native: Path, wheel_files: list[Path], out: Path) -> None:
    """One archive of all Python, and of the module."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for wheel in wheel_files:
            with zipfile.ZipFile(wheel) as source:
                for name in source.namelist():
                    if _is_needed(name) and not name.endswith("/"):
                        archive.writestr(name, source.read(name))
        package = ROOT / "fairlane"
        files = [*package.glob("*.py"), *(f for folder in OURS for f in sorted((package / folder).rglob("*")))]
        for file in files:
            if file.is_file() and file.suffix in KINDS and not set(LEFT_OUT) & set(file.parts):
                archive.write(file, f"fairlane/{file.relative_to(package)}")
        # A run's summary names the version.
        known = distribution("fairlane")
        archive.writestr(
            f"fairlane-{known.version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: fairlane\nVersion: {known.version}\n"
        )
        archive.write(native, "fairlane/native.abi3.so")


def content() -> dict[str, Any]:
    """What the page shows before Python is there: the labs as they are handed out, experiments, P4 sources, a begun algorithm."""
    found: dict[str, Any] = {"labs": [], "experiments": [], "files": {}}
    with tempfile.TemporaryDirectory() as name:
        for number in labs.numbers():
            lab, settings = labs.load(number), labs.load(number).settings
            folder = labs.skeleton(lab, Path(name) / number)
            files = {file: (folder / file).read_text() for file in settings.files}
            pages = {page.name: page.read_text() for page in sorted(lab.folder.glob("*.md"))}
            checks = [{"title": check.title, "of": check.points, "limit_s": runner.SLOWER * check.limit_s} for check in lab.checks]
            title = {"number": number, "title": settings.title, "minutes": settings.minutes, "mininet": settings.mininet}
            found["labs"].append({**title, "files": files, "pages": pages, "checks": checks})
        own, _ = skeleton.algorithm(OWN, Path(name), checkout=False)
        found["files"][own.name] = own.read_text()
    experiments = [(name, loader.find(name)) for name in loader.names()]
    for name, path in [(OWN, WEB / "src" / f"{OWN}.toml"), *experiments]:
        document = loader.read(path)
        found["experiments"].append(
            {"name": name, **{key: document.values[key] for key in ("title", "duration_s")}, "text": path.read_text()}
        )
    places = user_files.replaceable(ROOT / "p4src" / "als.p4")
    found["files"] |= {name: (ROOT / "p4src" / place).read_text() for name, place in sorted(places.items())}
    return found


def assemble(native: Path, out: Path) -> None:
    """The folder, in place of what was there."""
    modules = WEB / "node_modules"
    if not (modules / "pyodide").is_dir():
        raise SystemExit("web: web/node_modules is not there: run 'make web', which fills it by npm")
    if not native.is_file():
        raise SystemExit(f"web: {native} is no file: scripts/web builds fairlane.native as WebAssembly and prints its name")
    shutil.rmtree(out, ignore_errors=True)
    (out / "pyodide").mkdir(parents=True)
    for name in PYODIDE:
        shutil.copyfile(modules / "pyodide" / name, out / "pyodide" / name)
    module = (modules / "pyodide" / MODULE).read_bytes()
    (out / "pyodide" / f"{MODULE}.packed").write_bytes(gzip.compress(module, mtime=0))
    for name in ("index.html", "bridge.py"):
        shutil.copyfile(WEB / "src" / name, out / name)
    (out / "content.json").write_text(json.dumps(content()))
    bundle = [
        str(modules / ".bin" / "esbuild"),
        "src/main.js",
        "src/worker.js",
        "src/main.css",
        "--bundle",
        "--minify",
        "--format=esm",
        f"--outdir={out.resolve()}",
    ]
    subprocess.run([*bundle, "--log-level=warning"], cwd=WEB, check=True)
    with tempfile.TemporaryDirectory() as name:
        pack(native, wheels(Path(name)), out / "packages.zip")
    files = [out / "packages.zip", out / "bridge.py", out / "memory.packed"]
    subprocess.run(["node", "snapshot.mjs", *(str(file.resolve()) for file in files)], cwd=WEB, check=True)
    _offline(out)


def _offline(out: Path) -> None:
    """The service worker, which knows every file of the folder; its version is of what they hold."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    digest = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()[:16]
    names = ["./", *(str(path.relative_to(out)) for path in files)]
    told = f'const VERSION = "fairlane-{digest}";\nconst FILES = {json.dumps(names)};\n'
    (out / "offline.js").write_text(told + (WEB / "src" / "offline.js").read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--native", type=Path, required=True, help="fairlane.native as WebAssembly, which scripts/web builds")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "web", help="folder to write (default: build/web)")
    arguments = parser.parse_args()
    assemble(arguments.native, arguments.out)
    total = sum(path.stat().st_size for path in arguments.out.rglob("*") if path.is_file())
    print(f"{arguments.out}: {total / 1e6:.1f} MB; open it from any web server, or by 'make web SERVE=1'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
