"""`simple_switch_CLI`: the run-time commands, and those of `simple_switch` alone."""

from __future__ import annotations

from typing import Any

from fairlane.bmv2 import interface
from fairlane.bmv2.cli import PreType, RuntimeAPI, get_parser, load_json_config, thrift_connect

__all__ = ["PreType", "RuntimeAPI", "SimpleSwitchAPI", "get_parser", "load_json_config", "main", "thrift_connect"]


class SimpleSwitchAPI(RuntimeAPI):
    @staticmethod
    def get_thrift_services(_: int = PreType.none) -> list[tuple[str | None, Any]]:
        return [("simple_switch", interface.client("simple_switch"))]

    def __init__(self, pre_type: int, standard_client: Any, mc_client: Any, sswitch_client: Any) -> None:
        super().__init__(pre_type, standard_client, mc_client)
        self.sswitch_client = sswitch_client

    def _queue(self, line: str, what: str, calls: tuple[Any, Any, Any]) -> None:
        """The call for all ports, for one, or for one and a priority."""
        first, *rest = self._some(line, 1)
        where = [self.parse_int(word, name) for word, name in zip(rest[:2], ("egress_port", "priority"), strict=False)]
        calls[len(where)](*where, self.parse_int(first, what))

    def do_set_queue_depth(self, line: str) -> None:
        "Set depth of one / all egress queue(s): set_queue_depth <nb_pkts> [<egress_port> [<priority>]]"
        client = self.sswitch_client
        calls = (client.set_all_egress_queue_depths, client.set_egress_queue_depth, client.set_egress_priority_queue_depth)
        self._queue(line, "nb_pkts", calls)

    def do_set_queue_rate(self, line: str) -> None:
        "Set rate of one / all egress queue(s): set_queue_rate <rate_pps> [<egress_port> [<priority>]]"
        client = self.sswitch_client
        calls = (client.set_all_egress_queue_rates, client.set_egress_queue_rate, client.set_egress_priority_queue_rate)
        self._queue(line, "rate_pps", calls)

    def _mirror(self, line: str, second: str, field: str) -> None:
        session, to = self._args(line, 2)
        config = interface.module("simple_switch").MirroringSessionConfig(**{field: self.parse_int(to, second)})
        self.sswitch_client.mirroring_session_add(self.parse_int(session, "mirror_id"), config)

    def do_mirroring_add(self, line: str) -> None:
        "Add mirroring session to unicast port: mirroring_add <mirror_id> <egress_port>"
        self._mirror(line, "egress_port", "port")

    def do_mirroring_add_mc(self, line: str) -> None:
        "Add mirroring session to multicast group: mirroring_add_mc <mirror_id> <mgrp>"
        self._mirror(line, "mgrp", "mgid")

    def do_mirroring_delete(self, line: str) -> None:
        "Delete mirroring session: mirroring_delete <mirror_id>"
        self.sswitch_client.mirroring_session_delete(self.parse_int(self._args(line, 1)[0], "mirror_id"))

    def do_mirroring_get(self, line: str) -> None:
        "Display mirroring session: mirroring_get <mirror_id>"
        config = self.sswitch_client.mirroring_session_get(self.parse_int(self._args(line, 1)[0], "mirror_id"))
        print(f"MirroringSessionConfig(port={config.port}, mgid={config.mgid})")

    def do_get_time_elapsed(self, _: str) -> None:
        "Get time elapsed (in microseconds) since the switch started: get_time_elapsed"
        print(self.sswitch_client.get_time_elapsed_us())

    def do_get_time_since_epoch(self, _: str) -> None:
        "Get time elapsed (in microseconds) since the switch clock's epoch: get_time_since_epoch"
        print(self.sswitch_client.get_time_since_epoch_us())


def main() -> None:
    given = get_parser().parse_args()
    services = [*RuntimeAPI.get_thrift_services(PreType.SimplePreLAG), *SimpleSwitchAPI.get_thrift_services()]
    standard, multicast, switch = thrift_connect(given.thrift_ip, given.thrift_port, services)
    load_json_config(standard, given.json)
    SimpleSwitchAPI(PreType.SimplePreLAG, standard, multicast, switch).cmdloop()
