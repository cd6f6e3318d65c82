"""P4Runtime's protobuf messages, as finsy has them: `p4d`, `p4i` and `p4r`.

`import finsy` brings its client, gRPC and asyncio with it. They take 0.1 s, and neither a run in virtual time nor a page in a browser needs them.
So these messages are loaded from finsy's folder, under finsy's names, without the code of the packages around them. Who imports finsy later gets the
whole of it, with the same messages.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING

_PACKAGES = ("finsy", "finsy.proto")


def load(name: str) -> ModuleType:
    """A module of finsy.proto, such as p4.v1.p4runtime_pb2."""
    bare = [package for package in _PACKAGES if package not in sys.modules]
    for package in bare:
        parent = package.rpartition(".")[0]
        found = importlib.machinery.PathFinder.find_spec(package, sys.modules[parent].__path__ if parent else None)
        if found is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        sys.modules[package] = importlib.util.module_from_spec(found)
    try:
        return importlib.import_module(f"finsy.proto.{name}")
    finally:
        for package in bare:
            del sys.modules[package]


if TYPE_CHECKING:
    from finsy.proto import p4d as p4d
    from finsy.proto import p4i as p4i
    from finsy.proto import p4r as p4r
else:
    p4i = load("p4.config.v1.p4info_pb2")
    p4d = load("p4.v1.p4data_pb2")
    p4r = load("p4.v1.p4runtime_pb2")
