"""BMv2's run-time services: tables, counters, meters, registers, multicast, clone sessions, queues.

Methods are named like BMv2's without the prefix `bm_`; integers for widths and indices, bytes for keys and action data, which must be as
long as the field's width says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tools.bmv2.thrift import Client

EXACT, LPM, TERNARY, VALID, RANGE = range(5)
_PARAM = {
    "type": (1, "i32"),
    "exact": (2, {"key": (1, "binary")}),
    "lpm": (3, {"key": (1, "binary"), "prefix_length": (2, "i32")}),
    "ternary": (4, {"key": (1, "binary"), "mask": (2, "binary")}),
    "valid": (5, {"key": (1, "bool")}),
    "range": (6, {"start": (1, "binary"), "end": (2, "binary")}),
}
_OPTIONS = {"priority": (1, "i32")}
_RATE = {"units_per_micros": (1, "double"), "burst_size": (2, "i32")}
_COUNT = {"bytes": (1, "i64"), "packets": (2, "i64")}
_CONTEXT = {"cxt_id": (1, "i32")}


def exact(key: bytes) -> dict:
    return {"type": EXACT, "exact": {"key": key}}


def lpm(key: bytes, prefix_length: int) -> dict:
    return {"type": LPM, "lpm": {"key": key, "prefix_length": prefix_length}}


def ternary(key: bytes, mask: bytes) -> dict:
    return {"type": TERNARY, "ternary": {"key": key, "mask": mask}}


def valid(key: bool) -> dict:
    return {"type": VALID, "valid": {"key": key}}


def range_(start: bytes, end: bytes) -> dict:
    return {"type": RANGE, "range": {"start": start, "end": end}}


class Runtime:
    def __init__(self, port: int) -> None:
        self._client = Client(port)

    def close(self) -> None:
        self._client.close()

    def _standard(self, method: str, parameters: Sequence[tuple[str, Any, Any]]) -> Any:
        return self._in("standard", method, parameters)

    def _in(self, service: str, method: str, parameters: Sequence[tuple[str, Any, Any]]) -> Any:
        kinds = _CONTEXT | {name: (i, kind) for i, (name, kind, _) in enumerate(parameters, 2)}
        return self._client.call(service, f"bm_{method}", kinds, cxt_id=0, **{name: value for name, _, value in parameters})

    # Tables

    def mt_add_entry(self, table: str, key: list[dict], action: str, data: list[bytes], priority: int | None) -> int:
        return self._standard("mt_add_entry", [
            ("table_name", "string", table), ("match_key", ("list", _PARAM), key), ("action_name", "string", action),
            ("action_data", ("list", "binary"), data), ("options", _OPTIONS, {"priority": priority})])

    def mt_indirect_add_entry(self, table: str, key: list[dict], member: int, priority: int | None) -> int:
        return self._standard("mt_indirect_add_entry", [
            ("table_name", "string", table), ("match_key", ("list", _PARAM), key), ("mbr_handle", "i32", member),
            ("options", _OPTIONS, {"priority": priority})])

    def mt_indirect_ws_add_entry(self, table: str, key: list[dict], group: int, priority: int | None) -> int:
        return self._standard("mt_indirect_ws_add_entry", [
            ("table_name", "string", table), ("match_key", ("list", _PARAM), key), ("grp_handle", "i32", group),
            ("options", _OPTIONS, {"priority": priority})])

    def mt_set_default_action(self, table: str, action: str, data: list[bytes]) -> None:
        self._standard("mt_set_default_action", [
            ("table_name", "string", table), ("action_name", "string", action), ("action_data", ("list", "binary"), data)])

    def mt_indirect_set_default_member(self, table: str, member: int) -> None:
        self._standard("mt_indirect_set_default_member", [("table_name", "string", table), ("mbr_handle", "i32", member)])

    def mt_clear_entries(self, table: str) -> None:
        self._standard("mt_clear_entries", [("table_name", "string", table), ("reset_default_entry", "bool", False)])

    def mt_read_counter(self, table: str, entry: int) -> tuple[int, int]:
        """Packets, bytes."""
        got = self._standard("mt_read_counter", [("table_name", "string", table), ("entry_handle", "i32", entry)])
        return got[2], got[1]

    def mt_act_prof_add_member(self, profile: str, action: str, data: list[bytes]) -> int:
        return self._standard("mt_act_prof_add_member", [
            ("act_prof_name", "string", profile), ("action_name", "string", action), ("action_data", ("list", "binary"), data)])

    def mt_act_prof_create_group(self, profile: str) -> int:
        return self._standard("mt_act_prof_create_group", [("act_prof_name", "string", profile)])

    def mt_act_prof_add_member_to_group(self, profile: str, member: int, group: int) -> None:
        self._standard("mt_act_prof_add_member_to_group", [
            ("act_prof_name", "string", profile), ("mbr_handle", "i32", member), ("grp_handle", "i32", group)])

    # Counters, meters, registers

    def counter_read(self, counter: str, index: int) -> tuple[int, int]:
        """Packets, bytes."""
        got = self._standard("counter_read", [("counter_name", "string", counter), ("index", "i32", index)])
        return got[2], got[1]

    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        self._standard("counter_write", [
            ("counter_name", "string", counter), ("index", "i32", index), ("value", _COUNT, {"bytes": bytes_, "packets": packets})])

    def meter_array_set_rates(self, meter: str, rates: Iterable[tuple[float, int]]) -> None:
        """Rates are units per microsecond, each with its burst; the committed one first."""
        self._standard("meter_array_set_rates", [("meter_array_name", "string", meter), ("rates", ("list", _RATE), _rates(rates))])

    def meter_set_rates(self, meter: str, index: int, rates: Iterable[tuple[float, int]]) -> None:
        self._standard("meter_set_rates", [
            ("meter_array_name", "string", meter), ("index", "i32", index), ("rates", ("list", _RATE), _rates(rates))])

    def meter_get_rates(self, meter: str, index: int) -> list[tuple[float, int]]:
        got = self._standard("meter_get_rates", [("meter_array_name", "string", meter), ("index", "i32", index)])
        return [(rate[1], rate[2]) for rate in got]

    def register_read(self, register: str, index: int) -> int:
        return self._standard("register_read", [("register_array_name", "string", register), ("idx", "i32", index)])

    def register_read_all(self, register: str) -> list[int]:
        """Values; what is larger than 2^63 - 1 is said to be that."""
        return self._standard("register_read_all", [("register_array_name", "string", register)])

    def register_write(self, register: str, index: int, value: int) -> None:
        self._standard("register_write", [
            ("register_array_name", "string", register), ("index", "i32", index), ("value", "i64", value)])

    def register_reset(self, register: str) -> None:
        self._standard("register_reset", [("register_array_name", "string", register)])

    def device_id(self) -> int:
        """`--device-id`: whether this is the switch that one has started."""
        return self._client.call("standard", "bm_mgmt_get_info", {})[1]

    def reset_state(self) -> None:
        self._client.call("standard", "bm_reset_state", {})

    # Packet replication

    def mc_mgrp_create(self, group: int) -> int:
        return self._in("simple_pre_lag", "mc_mgrp_create", [("mgrp", "i32", group)])

    def mc_node_create(self, rid: int, ports: Iterable[int]) -> int:
        return self._in("simple_pre_lag", "mc_node_create", [
            ("rid", "i32", rid), ("port_map", "string", port_map(ports)), ("lag_map", "string", "")])

    def mc_node_update(self, node: int, ports: Iterable[int]) -> None:
        self._in("simple_pre_lag", "mc_node_update", [
            ("l1_handle", "i32", node), ("port_map", "string", port_map(ports)), ("lag_map", "string", "")])

    def mc_node_associate(self, group: int, node: int) -> None:
        self._in("simple_pre_lag", "mc_node_associate", [("mgrp_handle", "i32", group), ("l1_handle", "i32", node)])

    def mirroring_session_add(self, session: int, port: int | None = None, group: int | None = None) -> None:
        self._client.call("simple_switch", "mirroring_session_add",
                          {"mirror_id": (1, "i32"), "config": (2, {"port": (1, "i32"), "mgid": (2, "i32")})},
                          mirror_id=session, config={"port": port, "mgid": group})

    def mirroring_session_get(self, session: int) -> dict[str, int]:
        got = self._client.call("simple_switch", "mirroring_session_get", {"mirror_id": (1, "i32")}, mirror_id=session)
        return {name: got[field] for field, name in ((1, "port"), (2, "mgid")) if field in got}

    def mirroring_session_delete(self, session: int) -> None:
        self._client.call("simple_switch", "mirroring_session_delete", {"mirror_id": (1, "i32")}, mirror_id=session)

    def set_all_egress_queue_depths(self, packets: int) -> None:
        self._client.call("simple_switch", "set_all_egress_queue_depths", {"depth_pkts": (1, "i32")}, depth_pkts=packets)


def port_map(ports: Iterable[int]) -> str:
    """Binary digits, port 0 last."""
    wanted = set(ports)
    return "".join("1" if port in wanted else "0" for port in range(max(wanted, default=0), -1, -1))


def _rates(rates: Iterable[tuple[float, int]]) -> list[dict]:
    return [{"units_per_micros": rate, "burst_size": burst} for rate, burst in rates]
