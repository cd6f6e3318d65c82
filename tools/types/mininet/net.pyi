from typing import Generic, TypeVar

from mininet.link import Link
from mininet.node import Host, Switch

S = TypeVar("S", bound=Switch)
H = TypeVar("H", bound=Host)

# At run time it takes no parameters in brackets: mypy infers them from the classes that it is made with.
class Mininet(Generic[S, H]):
    built: bool
    hosts: list[H]
    switches: list[S]
    def __init__(self, topo: None, switch: type[S], host: type[H], controller: None, link: type[Link], build: bool) -> None: ...
    # Of hosts; switches have a list.
    def __getitem__(self, key: str) -> H: ...
    def addHost(self, name: str, **params: object) -> H: ...
    def addSwitch(self, name: str, **params: object) -> S: ...
    def addLink(
        self,
        node1: str,
        node2: str,
        port1: int,
        port2: int,
        *,
        intfName1: str,
        intfName2: str,
        addr1: str,
        addr2: str,
    ) -> Link: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
