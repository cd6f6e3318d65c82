"""The packages that BMv2's names refer to in the current Python.

In a Python with Fairlane they are Fairlane's. In any other Python, such as a virtual environment with p4runtime-shell, they are the
environment's own packages. The folders of PYTHONPATH come before these, so the packages in this folder must give way.

Any Python may import this module, so it imports only the standard library.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast

_HERE = os.path.dirname(os.path.abspath(__file__))
# The name's first word: what Fairlane's module needs beside Fairlane, and what to install where neither is there.
_NEEDS = {"p4": ("finsy", "p4runtime"), "google": ("finsy", "googleapis-common-protos")}
_THRIFT = ("thriftpy2", "'fairlane[bmv2]'")


def _has_fairlane(name: str) -> bool:
    needed, _ = _NEEDS.get(name.partition(".")[0], _THRIFT)
    return find_spec("fairlane") is not None and find_spec(needed) is not None


def step_aside(name: str, namespace: dict[str, Any]) -> bool:
    """Run the environment's own module of this name in the namespace of ours. False where there is none, or Fairlane's is the one to use.

    A package of ours then holds the environment's modules, and ours for those that it lacks, such as p4.tmp."""
    if _has_fairlane(name):
        return False
    parent = name.rpartition(".")[0]
    folders = sys.modules[parent].__path__ if parent else sys.path
    others = [folder for folder in folders if not os.path.abspath(folder).startswith(_HERE)]
    spec = PathFinder.find_spec(name, others)
    if spec is None:
        return False
    if spec.submodule_search_locations is not None:
        namespace["__path__"] = [*spec.submodule_search_locations, *namespace.get("__path__", [])]
    if spec.origin is not None and spec.loader is not None:
        namespace["__file__"] = spec.origin
        code = cast(InspectLoader, spec.loader).get_code(name)
        assert code is not None
        exec(code, namespace)
    return True


def fairlane(module: str, name: str) -> ModuleType:
    """A module of fairlane.bmv2, for the module `name` here. ModuleNotFoundError says what to do where it cannot be had."""
    if not _has_fairlane(name):
        package = _NEEDS.get(name.partition(".")[0], _THRIFT)[1]
        command = shutil.which("fairlane-switch-cli")
        python = f", or use Fairlane's Python, {os.path.join(os.path.dirname(command), 'python')}" if command else ""
        said = f"No module named {name!r} in this Python: {sys.executable} -m pip install {package}{python}"
        # Named by its first word: `from . import X` would swallow an error that bears the name of X.
        raise ModuleNotFoundError(said, name=name.partition(".")[0])
    return importlib.import_module(f"fairlane.bmv2.{module}")


def publish(module: str, name: str, namespace: dict[str, Any]) -> bool:
    """Fill the namespace of the module `name` here with what a module of fairlane.bmv2 offers. False where the environment's own did that."""
    if step_aside(name, namespace):
        return False
    ours = vars(fairlane(module, name))
    namespace.update({word: ours[word] for word in ours["__all__"]})
    return True
