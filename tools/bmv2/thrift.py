"""Thrift's binary protocol over TCP, as much of it as BMv2's services need.

A type is a name of `SCALARS`, `("list", TYPE)`, or a struct: `{NAME: (FIELD_ID, TYPE)}`. Structs are dicts; a field that is
None or absent is not sent.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

Type = str | tuple[str, Any] | dict[str, tuple[int, Any]]

SCALARS = {"bool": 2, "double": 4, "i16": 6, "i32": 8, "i64": 10, "string": 11, "binary": 11}
_FORMATS = {2: "!?", 3: "!b", 4: "!d", 6: "!h", 8: "!i", 10: "!q"}
_STRUCT, _MAP, _SET, _LIST = 12, 13, 14, 15
_CALL, _REPLY, _EXCEPTION = 1, 2, 3
_VERSION = 0x80010000


class ThriftError(Exception):
    """The server refused a call. `fields` are those of the exception it declared: BMv2's have one, a code."""

    def __init__(self, method: str, fields: Any) -> None:
        super().__init__(f"{method}: {fields}")
        self.fields = fields


def type_id(kind: Type) -> int:
    if isinstance(kind, dict):
        return _STRUCT
    return _LIST if isinstance(kind, tuple) else SCALARS[kind]


def encode(kind: Type, value: Any) -> bytes:
    if isinstance(kind, dict):
        out = bytearray()
        for name, (field, inner) in kind.items():
            if value.get(name) is not None:
                out += struct.pack("!bh", type_id(inner), field) + encode(inner, value[name])
        return bytes(out + b"\0")
    if isinstance(kind, tuple):
        return struct.pack("!bi", type_id(kind[1]), len(value)) + b"".join(encode(kind[1], item) for item in value)
    if SCALARS[kind] == 11:
        data = value.encode() if isinstance(value, str) else value
        return struct.pack("!i", len(data)) + data
    return struct.pack(_FORMATS[SCALARS[kind]], value)


class Client:
    """One connection. Calls are answered in order; `timeout_s` holds for each."""

    def __init__(self, port: int, host: str = "127.0.0.1", timeout_s: float = 20.0) -> None:
        self._socket = socket.create_connection((host, port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self._sequence = 0

    def call(self, service: str, method: str, parameters: dict[str, tuple[int, Any]], **values: Any) -> Any:
        """What the call returns: a struct is a dict by field number, a string is bytes, nothing is None."""
        self._sequence += 1
        name = f"{service}:{method}".encode()
        head = struct.pack("!Ii", _VERSION | _CALL, len(name)) + name + struct.pack("!i", self._sequence)
        self._socket.sendall(head + encode(parameters, values))
        version, length = self._unpack("!Ii")
        self._read(length)
        self._unpack("!i")
        result = self._value(_STRUCT)
        if version & 0xFF != _REPLY or set(result) - {0}:
            raise ThriftError(method, {k: v for k, v in result.items() if k} or result)
        return result.get(0)

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _read(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) != length:
            raise ConnectionError("the Thrift server closed the connection")
        return data

    def _unpack(self, form: str) -> tuple:
        return struct.unpack(form, self._read(struct.calcsize(form)))

    def _value(self, kind: int) -> Any:
        if kind == _STRUCT:
            fields = {}
            while (inner := self._unpack("!b")[0]) != 0:
                (field,) = self._unpack("!h")
                fields[field] = self._value(inner)
            return fields
        if kind in (_LIST, _SET):
            inner, count = self._unpack("!bi")
            return [self._value(inner) for _ in range(count)]
        if kind == _MAP:
            key, value, count = self._unpack("!bbi")
            return {self._value(key): self._value(value) for _ in range(count)}
        if kind == 11:
            return self._read(self._unpack("!i")[0])
        if kind not in _FORMATS:
            raise ConnectionError(f"the Thrift server sent a value of type {kind}")
        return self._unpack(_FORMATS[kind])[0]
