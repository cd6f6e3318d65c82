"""BMv2's run-time services: tables, counters, meters, registers, multicast, clone sessions, queues.

Methods are named like BMv2's without the prefix `bm_`; integers for widths and indices, bytes for keys and action data, which must be as
long as the field's width says. A call that BMv2 refuses raises Refused, one that it does not answer ConnectionError.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from fairlane.bmv2 import interface
from fairlane.fabrics.bmv2_thrift import CONTEXT, Connection

EXACT, LPM, TERNARY, VALID, RANGE = range(5)
_TYPES = interface.module("standard")


class Refused(Exception):
    """BMv2 refused a call; the text has its code."""


class Match(Protocol):
    """A key field of an entry, a struct of BMv2's interface. type: one of the kinds above."""

    type: int


def exact(key: bytes) -> Match:
    return _match(EXACT, exact=_TYPES.BmMatchParamExact(key=key))


def lpm(key: bytes, prefix_length: int) -> Match:
    return _match(LPM, lpm=_TYPES.BmMatchParamLPM(key=key, prefix_length=prefix_length))


def ternary(key: bytes, mask: bytes) -> Match:
    return _match(TERNARY, ternary=_TYPES.BmMatchParamTernary(key=key, mask=mask))


def valid(key: bool) -> Match:
    return _match(VALID, valid=_TYPES.BmMatchParamValid(key=key))


def range_(low: bytes, high: bytes) -> Match:
    return _match(RANGE, range=_TYPES.BmMatchParamRange(start=low, end_=high))


def _match(kind: int, **field: object) -> Match:
    match: Match = _TYPES.BmMatchParam(type=kind, **field)
    return match


class Runtime:
    def __init__(self, port: int, timeout_s: float = 20.0) -> None:
        self._connection = Connection(port, timeout_s)
        try:
            self._connection.open()
        except TTransportException as error:
            raise ConnectionError(error.message) from error

    def close(self) -> None:
        self._connection.close()

    def _call(self, service: str, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._connection.service(service), method)(*arguments)
        except (TTransportException, EOFError) as error:
            raise ConnectionError(f"BMv2 does not answer {method}: {error}") from error
        except TException as refused:
            raise Refused(f"{method}: {refused}") from refused

    def _standard(self, method: str, *arguments: Any) -> Any:
        return self._call("standard", f"bm_{method}", CONTEXT, *arguments)

    # Tables

    def mt_add_entry(self, table: str, key: list[Match], action: str, data: list[bytes], priority: int | None) -> int:
        return int(self._standard("mt_add_entry", table, key, action, data, _options(priority)))

    def mt_indirect_add_entry(self, table: str, key: list[Match], member: int, priority: int | None) -> int:
        return int(self._standard("mt_indirect_add_entry", table, key, member, _options(priority)))

    def mt_indirect_ws_add_entry(self, table: str, key: list[Match], group: int, priority: int | None) -> int:
        return int(self._standard("mt_indirect_ws_add_entry", table, key, group, _options(priority)))

    def mt_set_default_action(self, table: str, action: str, data: list[bytes]) -> None:
        self._standard("mt_set_default_action", table, action, data)

    def mt_indirect_set_default_member(self, table: str, member: int) -> None:
        self._standard("mt_indirect_set_default_member", table, member)

    def mt_clear_entries(self, table: str) -> None:
        self._standard("mt_clear_entries", table, False)

    def mt_read_counter(self, table: str, entry: int) -> tuple[int, int]:
        """Packets, bytes."""
        got = self._standard("mt_read_counter", table, entry)
        return got.packets, got.bytes

    def mt_act_prof_add_member(self, profile: str, action: str, data: list[bytes]) -> int:
        return int(self._standard("mt_act_prof_add_member", profile, action, data))

    def mt_act_prof_create_group(self, profile: str) -> int:
        return int(self._standard("mt_act_prof_create_group", profile))

    def mt_act_prof_add_member_to_group(self, profile: str, member: int, group: int) -> None:
        self._standard("mt_act_prof_add_member_to_group", profile, member, group)

    # Counters, meters, registers

    def counter_read(self, counter: str, index: int) -> tuple[int, int]:
        """Packets, bytes."""
        got = self._standard("counter_read", counter, index)
        return got.packets, got.bytes

    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        self._standard("counter_write", counter, index, _TYPES.BmCounterValue(bytes=bytes_, packets=packets))

    def meter_array_set_rates(self, meter: str, rates: Iterable[tuple[float, int]]) -> None:
        """Rates are units per microsecond, each with its burst; the committed one first."""
        self._standard("meter_array_set_rates", meter, _rates(rates))

    def meter_set_rates(self, meter: str, index: int, rates: Iterable[tuple[float, int]]) -> None:
        self._standard("meter_set_rates", meter, index, _rates(rates))

    def meter_get_rates(self, meter: str, index: int) -> list[tuple[float, int]]:
        return [(rate.units_per_micros, rate.burst_size) for rate in self._standard("meter_get_rates", meter, index)]

    def register_read(self, register: str, index: int) -> int:
        return int(self._standard("register_read", register, index))

    def register_read_all(self, register: str) -> list[int]:
        """Values; what is larger than 2^63 - 1 is said to be that."""
        return list(self._standard("register_read_all", register))

    def register_write(self, register: str, index: int, value: int) -> None:
        self._standard("register_write", register, index, value)

    def register_reset(self, register: str) -> None:
        self._standard("register_reset", register)

    def device_id(self) -> int:
        """`--device-id`: whether this is the switch that one has started."""
        return int(self._call("standard", "bm_mgmt_get_info").device_id)

    def reset_state(self) -> None:
        self._call("standard", "bm_reset_state")

    # Packet replication

    def mc_mgrp_create(self, group: int) -> int:
        return int(self._call("simple_pre_lag", "bm_mc_mgrp_create", CONTEXT, group))

    def mc_node_create(self, rid: int, ports: Iterable[int]) -> int:
        return int(self._call("simple_pre_lag", "bm_mc_node_create", CONTEXT, rid, port_map(ports), ""))

    def mc_node_update(self, node: int, ports: Iterable[int]) -> None:
        self._call("simple_pre_lag", "bm_mc_node_update", CONTEXT, node, port_map(ports), "")

    def mc_node_associate(self, group: int, node: int) -> None:
        self._call("simple_pre_lag", "bm_mc_node_associate", CONTEXT, group, node)

    def mirroring_session_add(self, session: int, port: int | None = None, group: int | None = None) -> None:
        self._call(
            "simple_switch",
            "mirroring_session_add",
            session,
            interface.module("simple_switch").MirroringSessionConfig(port=port, mgid=group),
        )

    def mirroring_session_get(self, session: int) -> dict[str, int]:
        got = self._call("simple_switch", "mirroring_session_get", session)
        return {name: value for name in ("port", "mgid") if (value := getattr(got, name)) is not None}

    def mirroring_session_delete(self, session: int) -> None:
        self._call("simple_switch", "mirroring_session_delete", session)

    def set_all_egress_queue_depths(self, packets: int) -> None:
        self._call("simple_switch", "set_all_egress_queue_depths", packets)


def port_map(ports: Iterable[int]) -> str:
    """Binary digits, port 0 last."""
    wanted = set(ports)
    return "".join("1" if port in wanted else "0" for port in range(max(wanted, default=0), -1, -1))


def _options(priority: int | None) -> Any:
    return _TYPES.BmAddEntryOptions(priority=priority)


def _rates(rates: Iterable[tuple[float, int]]) -> list[Any]:
    return [_TYPES.BmMeterRateConfig(units_per_micros=rate, burst_size=burst) for rate, burst in rates]
