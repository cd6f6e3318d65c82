"""A control plane of one's own: `from fairlane.controller.plane import ControlPlane`. docs/own-program.md describes it."""

from fairlane.controller.p4info import NotInProgram
from fairlane.controller.plane.base import ControlPlane, Digest, DigestList, PacketIn
from fairlane.controller.plane.calls import (
    Batch,
    Call,
    Cells,
    Counter,
    CounterValue,
    Meter,
    Register,
    Rewrites,
    Selector,
    Switch,
    SwitchRefused,
    Table,
)
from fairlane.controller.plane.names import Entry, Group, Key, Member, Value
from fairlane.controller.plane.network import Host, Port

__all__ = [
    "Batch",
    "Call",
    "Cells",
    "ControlPlane",
    "Counter",
    "CounterValue",
    "Digest",
    "DigestList",
    "Entry",
    "Group",
    "Host",
    "Key",
    "Member",
    "Meter",
    "NotInProgram",
    "PacketIn",
    "Port",
    "Register",
    "Rewrites",
    "Selector",
    "Switch",
    "SwitchRefused",
    "Table",
    "Value",
]
