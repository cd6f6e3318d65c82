"""What a release is made of, beside wheels and sdist: `make release` runs all of it here, and .github/workflows/release.yml by a tag."""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
from pathlib import Path

from tools.release import versions

ROOT = Path(__file__).resolve().parents[2]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    agree = commands.add_parser("agree", help="check that all files have one version")
    agree.add_argument("--tag", help="tag of the release, such as v0.2.0; the files must be ready for it")
    new = commands.add_parser("version", help="write a version into all files; what was unreleased becomes its notes")
    new.add_argument("version", help="such as 0.2.0")
    commands.add_parser("notes", help="print what CHANGELOG.md says of the version")
    for name, text in {
        "page": "pack build/web into one archive",
        "sbom": "write lists of what the release has from others",
        "check": "check the folder, and write SHA256SUMS",
    }.items():
        commands.add_parser(name, help=text).add_argument(
            "--dist", type=Path, default=ROOT / "dist", help="folder of the release (default: dist)"
        )
    options = parser.parse_args()

    if options.command == "version":
        if versions.NUMBER.fullmatch(options.version) is None:
            parser.error(f"{options.version}: a version is three numbers, such as 0.2.0")
        print("\n".join(versions.write(ROOT, options.version, datetime.datetime.now(datetime.timezone.utc).date().isoformat())))
        # the fuzz targets have a workspace, and so a lock, of their own
        workspaces = [["--manifest-path", f"{folder}/Cargo.toml"] for folder in ("switch", "switch/bin/fuzz/runner")]
        for lock in (["scripts/uv", "lock"], *(["scripts/cargo", "update", "--workspace", *of] for of in workspaces)):
            subprocess.run(lock, cwd=ROOT, check=True)
        return 0
    if options.command == "agree":
        faults = versions.faults(ROOT, options.tag)
        print("\n".join(faults), file=sys.stderr) if faults else print(f"version {versions.version(ROOT)} in {len(versions.PLACES)} files")
        return 1 if faults else 0
    version = versions.version(ROOT)
    if options.command == "notes":
        print(versions.notes(ROOT, version))
        return 0

    # Their packages are those of the group 'release'; the commands above need Python alone.
    from tools.release import check, page, sbom

    os.environ.setdefault("SOURCE_DATE_EPOCH", git("log", "-1", "--format=%ct"))
    commit = git("rev-parse", "HEAD")
    options.dist.mkdir(exist_ok=True)
    if options.command == "page":
        page.pack(ROOT / "build" / "web", options.dist / page.file(version))
        print(options.dist / page.file(version))
    elif options.command == "sbom":
        for kind, make in sbom.KINDS.items():
            path = options.dist / sbom.file(kind, version)
            path.write_text(sbom.repeatable(make(ROOT), commit), encoding="utf-8")
            print(path)
    else:
        faults = check.faults(options.dist, version, commit)
        if faults:
            print("\n".join(faults), file=sys.stderr)
            return 1
        print(check.sums(options.dist), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
