"""P4Runtime's messages by the names of the package `p4runtime`, which many controllers import and which newer protobufs refuse to load:
they are those of finsy, which Fairlane uses itself."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any


def alias(name: str) -> None:
    """Make the module of this name, such as p4.v1.p4runtime_pb2, another name of finsy's."""
    sys.modules[name] = importlib.import_module(f"finsy.proto.{name}")


@functools.cache
def device_config() -> Any:
    """The message around BMv2 JSON that the P4 tutorials' controllers send, `p4.tmp.P4DeviceConfig`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
    message = file.message_type.add(name="P4DeviceConfig")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, number, kind in (("reassign", 1, kinds.TYPE_BOOL), ("device_data", 3, kinds.TYPE_BYTES)):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig"))
