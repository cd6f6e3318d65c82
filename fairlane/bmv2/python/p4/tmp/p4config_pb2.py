"""The message around BMv2 JSON that the P4 tutorials' controllers send, which the package p4runtime no longer has. Any protobuf will do."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _device_config() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
    message = file.message_type.add(name="P4DeviceConfig")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, number, kind in (("reassign", 1, kinds.TYPE_BOOL), ("device_data", 3, kinds.TYPE_BYTES)):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    described = pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(described)
    factory: Any = message_factory.MessageFactory(pool)
    return factory.GetPrototype(described)  # protobuf before 4.22


P4DeviceConfig = _device_config()
