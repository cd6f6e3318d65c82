"""P4Runtime's messages by the names of the package `p4runtime`, which many controllers import and which newer protobufs refuse to load:
they are those of finsy, which Fairlane uses itself."""

from __future__ import annotations

import sys

from fairlane.controller import messages


def alias(name: str) -> None:
    """Make the module of this name, such as p4.v1.p4runtime_pb2, another name of finsy's."""
    sys.modules[name] = messages.load(name)
