"""BMv2's four Thrift services as modules, in the form in which clients know them from BMv2's own bindings."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

try:
    import thriftpy2
    from thriftpy2.protocol import TBinaryProtocol, TMultiplexedProtocol
    from thriftpy2.thrift import TClient
    from thriftpy2.transport import TBufferedTransport, TSocket, TTransportException
except ImportError as missing:
    raise ImportError(f"BMv2's Thrift services need the package thriftpy2 for {sys.executable}: pip install 'fairlane[bmv2]'") from missing

SERVICES = {"standard": "Standard", "simple_pre": "SimplePre", "simple_pre_lag": "SimplePreLAG", "simple_switch": "SimpleSwitch"}
"""Names of the services on the wire; the file of each has its name, and its class is called this."""


@functools.cache
def module(service: str) -> ModuleType:
    """Structs, enumerations, exceptions of a service, and the service itself.

    service: its name on the wire, such as "standard"."""
    return thriftpy2.load(str(Path(__file__).with_name(f"{service}.thrift")), module_name=f"bmv2_{service}_thrift")


def types(service: str) -> dict[str, Any]:
    """What a service's module `ttypes` has: all but the service."""
    return {name: value for name, value in vars(module(service)).items() if isinstance(value, type) and name != SERVICES[service]}


class _Client(TClient):
    def bm_mgmt_get_info(self) -> Any:
        """As the interface says. Clients read the fields' names of it, in the form that Apache Thrift's bindings have."""
        info = self.__getattr__("bm_mgmt_get_info")()
        info.thrift_spec = [None, *((number, spec[0], spec[1]) for number, spec in sorted(type(info).thrift_spec.items()))]
        return info


@functools.cache
def client(service: str) -> Callable[[Any], TClient]:
    """The class of a service's clients: made of a protocol."""

    def make(self: TClient, protocol: Any) -> None:
        TClient.__init__(self, getattr(module(service), SERVICES[service]), protocol)

    base = _Client if service == "standard" else TClient
    return type("Client", (base,), {"__init__": make, "__doc__": f"A client of the service {service}."})


def publish(name: str, service: str) -> None:
    """Fill the module `name` as the bindings' module of a service is: its types, itself, and its class `Client`."""
    vars(sys.modules[name]).update(types(service), Client=client(service))


def connect(host: str, port: int, services: Iterable[tuple[str | None, Any]]) -> list[Any]:
    """One connection, and on it a client for each (name on the wire, class of clients); None for a service that is None.

    Raises ConnectionError when nobody answers."""
    transport = TBufferedTransport(TSocket(host, port))
    protocol = TBinaryProtocol(transport)
    clients = [kind and kind(TMultiplexedProtocol(protocol, name)) for name, kind in services]
    try:
        transport.open()
    except TTransportException as error:
        raise ConnectionError(f"{host}:{port}: {error.message}") from error
    return clients
