"""BMv2's run-time command line, `runtime_CLI`: its commands, their arguments, and the same output, because scripts read it."""

from __future__ import annotations

import argparse

from fairlane.bmv2 import connection
from fairlane.bmv2.commands.arrays import ArrayCommands
from fairlane.bmv2.commands.base import PreType, load_json_config
from fairlane.bmv2.commands.groups import GroupCommands
from fairlane.bmv2.commands.ports import PortCommands
from fairlane.bmv2.commands.tables import TableCommands

__all__ = ["PreType", "RuntimeAPI", "get_parser", "load_json_config", "main", "thrift_connect"]

thrift_connect = connection.thrift_connect


def get_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Commands for a switch with BMv2's Thrift services, read from standard input")
    parser.add_argument("--thrift-port", help="TCP port of the switch's Thrift services", type=int, default=9090)
    parser.add_argument("--thrift-ip", help="address of the switch", default="localhost")
    parser.add_argument("--json", help="the program's JSON (default: the switch's)")
    parser.add_argument("--pre", help="service of multicast groups", type=PreType.from_str, default=PreType.SimplePre)
    return parser


class RuntimeAPI(TableCommands, GroupCommands, ArrayCommands, PortCommands):
    """The commands: `do_NAME` each, with the rest of the line."""


def main() -> None:
    given = get_parser().parse_args()
    standard, multicast = thrift_connect(given.thrift_ip, given.thrift_port, RuntimeAPI.get_thrift_services(given.pre))
    load_json_config(standard, given.json)
    RuntimeAPI(given.pre, standard, multicast).cmdloop()
