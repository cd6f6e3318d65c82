"""A control plane of one's own: `from fairlane.controller.plane import ControlPlane`. docs/own-program.md describes it."""

from fairlane.controller.plane.base import ControlPlane, Digest, PacketIn
from fairlane.controller.plane.calls import Call, Counter, CounterValue, Meter, Register, Selector, Switch, SwitchRefused, Table
from fairlane.controller.plane.names import Entry, Group, Key, Member, NotInProgram, Value
from fairlane.controller.plane.network import Host, Port

__all__ = [
    "Call",
    "ControlPlane",
    "Counter",
    "CounterValue",
    "Digest",
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
    "Selector",
    "Switch",
    "SwitchRefused",
    "Table",
    "Value",
]
