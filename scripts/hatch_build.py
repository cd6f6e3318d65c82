"""Builds what a wheel of Fairlane holds beside Python: the executable that is each of our programs, and `fairlane.native` for CPython from 3.10 on.

pip calls it for `pip install .`, in a checkout and in an unpacked sdist; docs/decisions/declared-build.md has the reasons.
FAIRLANE_TARGET and FAIRLANE_PLATFORM are for another machine or an older C library, which zig links for: scripts/wheel sets them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Build(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        made = root / "build" / "package"
        made.mkdir(parents=True, exist_ok=True)
        if version != "editable" and (commit := _commit(root)):
            (made / "commit.json").write_text(json.dumps(commit) + "\n")
            build_data["force_include"][str(made / "commit.json")] = "fairlane/commit.json"
        if version != "editable":
            build_data["force_include"] |= _skeletons(root, made) | _pages(root)
        if self.target_name != "wheel":
            return
        # Python reads this line at its start and puts the names of BMv2's packages behind all others. sudo passes PATH on, and never
        # PYTHONPATH: a controller that `sudo python3` runs still finds `p4.v1` (fairlane/bmv2/python).
        names = "fairlane/bmv2/python"
        (made / "names.pth").write_text(f"{root / names if version == 'editable' else names}\n")
        included = build_data["force_include_editable" if version == "editable" else "force_include"]
        included[str(made / "names.pth")] = "fairlane_bmv2_names.pth"
        if version == "editable":  # scripts/build links the programs there
            return
        release = _compile(root)
        program, module = _names()
        included[str(release / program)] = f"fairlane/bin/{program}"
        included[str(release / module)] = f"fairlane/native{'.pyd' if module.endswith('.dll') else '.abi3.so'}"
        # A Python for macOS may be for two processors at once, and cargo compiles for one.
        mac = f"macosx_11_0_{os.uname().machine}" if sys.platform == "darwin" else ""
        platform = os.environ.get("FAIRLANE_PLATFORM") or mac or sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"cp310-abi3-{platform.replace('-', '_').replace('.', '_')}"


def _module(root: Path, name: str) -> Any:
    """A module of the labs that needs Python's own alone."""
    spec = importlib.util.spec_from_file_location(name, root / "fairlane" / "labs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _pages(root: Path) -> dict[str, str]:
    """Pages of docs/ that the labs' texts name. An sdist has them already."""
    if not (root / "docs").is_dir():
        return {}
    return {str(root / name): f"fairlane/labs/more/{name}" for name in _module(root, "handout").pages(root)}


def _skeletons(root: Path, made: Path) -> dict[str, str]:
    """The labs' files for students, by their places in a package: made from the solutions, which no package has. An sdist has them already."""
    skeletons = _module(root, "skeletons")
    found = {}
    for source in skeletons.sources():
        number = source.parents[1].name
        target = made / "labs" / number / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(skeletons.read(source).skeleton, encoding="utf-8", newline="\n")
        found[str(target)] = f"fairlane/labs/{number}/{source.name}"
    if not found:
        for toml in (root / "fairlane" / "labs").glob("[0-9][0-9]/lab.toml"):
            files = re.search(r"^files = \[(.*)\]$", toml.read_text(encoding="utf-8"), re.MULTILINE)
            for name in re.findall(r'"([^"]+)"', files[1] if files else ""):
                found[str(toml.with_name(name))] = f"fairlane/labs/{toml.parent.name}/{name}"
    return found


def _names() -> tuple[str, str]:
    """The executable and the module, as cargo names them for the target."""
    target = os.environ.get("FAIRLANE_TARGET", sys.platform)
    if "windows" in target or target == "win32":
        return "fairlane-switch.exe", "fairlane_native.dll"
    return "fairlane-switch", "libfairlane_native.dylib" if "darwin" in target else "libfairlane_native.so"


def _compile(root: Path) -> Path:
    """One call of cargo, so that no crate is compiled twice; the folder of what it made."""
    target = os.environ.get("FAIRLANE_TARGET")
    environment = os.environ | {"PYO3_NO_PYTHON": "1"}
    finsy = importlib.util.find_spec("finsy")
    if not any(root.glob(".venv/lib/python3*/site-packages/finsy/proto")) and finsy and finsy.origin:
        environment.setdefault("FAIRLANE_PROTO_DIR", str(Path(finsy.origin).with_name("proto")))
    if not target and os.name == "posix" and not (shutil.which("cc") and shutil.which("make")):
        sys.exit("fairlane: its programs are compiled here, which needs a C compiler and make: apt-get install gcc libc6-dev make")
    cargo = ["bash", str(root / "scripts" / "cargo")] if os.name == "posix" else ["cargo"]
    command = [*cargo, "zigbuild" if target else "build", "--manifest-path", str(root / "switch" / "Cargo.toml"), "--release", "--locked"]
    folder = Path(os.environ.get("CARGO_TARGET_DIR") or root / "switch" / "target").absolute()
    command += ["-p", "fairlane-programs", "-p", "fairlane-python", "--target-dir", str(folder), *(["--target", target] if target else [])]
    if subprocess.run(command, env=environment).returncode != 0:
        sys.exit("fairlane: its programs could not be compiled: see above; it needs Rust >= 1.88 (scripts/cargo looks for it)")
    # zigbuild's targets end with the version of the C library: x86_64-unknown-linux-gnu.2.17
    return folder / (target.partition(".")[0] if target else "") / "release"


def _commit(root: Path) -> dict[str, Any] | None:
    """What fairlane.results.made tells of results; None in an unpacked sdist, which holds it."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if not (root / ".git").exists() or (commit := git("rev-parse", "HEAD")) is None:
        return None
    return {"commit": commit, "changed": bool(git("status", "--porcelain", "--untracked-files=no"))}
