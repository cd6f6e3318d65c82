"""Commands about counters, meters, registers and value sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from fairlane.bmv2 import interface, words
from fairlane.bmv2.commands.base import CONTEXT, Commands
from fairlane.bmv2.program import Array, Named
from fairlane.bmv2.words import CommandError


def _rates(given: Sequence[str], count: int) -> list[Any]:
    if len(given) != count:
        raise CommandError(f"Invalid number of rates, expected {count} but got {len(given)}")
    kind = interface.module("standard").BmMeterRateConfig
    try:
        pairs = [word.split(":") for word in given]
        return [kind(float(rate), int(burst)) for rate, burst in pairs]
    except ValueError:
        raise CommandError("Error while parsing rates") from None


class ArrayCommands(Commands):
    def _cell(self, what: str, arrays: Named[Array], name: str, index: str) -> tuple[Array, int]:
        return self._find(what, arrays, name), words.integer(index, "Bad format for index")

    def do_counter_read(self, line: str) -> None:
        "Read counter value: counter_read <name> <index>"
        name, index_word = self._args(line, 2)
        counter, index = self._cell("counter", self.program.counters, name, index_word)
        if counter.table:
            print("this is the direct counter for table", counter.table)
            value = self.client.bm_mt_read_counter(CONTEXT, counter.table, index)
        else:
            value = self.client.bm_counter_read(CONTEXT, counter.name, index)
        print(f"{name}[{index}]= ({value.bytes} bytes, {value.packets} packets)")

    def do_counter_write(self, line: str) -> None:
        "Write counter value: counter_write <name> <index> <packets> <bytes>"
        name, index_word, packets, octets = self._args(line, 4)
        counter, index = self._cell("counter", self.program.counters, name, index_word)
        value = interface.module("standard").BmCounterValue(
            packets=words.integer(packets, "Bad format for packets"), bytes=words.integer(octets, "Bad format for bytes")
        )
        if counter.table:
            print("writing to direct counter for table", counter.table)
            self.client.bm_mt_write_counter(CONTEXT, counter.table, index, value)
        else:
            self.client.bm_counter_write(CONTEXT, counter.name, index, value)
        print(f"{name}[{index}] has been updated")

    def do_counter_reset(self, line: str) -> None:
        "Reset counter: counter_reset <name>"
        counter = self._find("counter", self.program.counters, self._args(line, 1)[0])
        if counter.table:
            print("this is the direct counter for table", counter.table)
            self.client.bm_mt_reset_counters(CONTEXT, counter.table)
        else:
            self.client.bm_counter_reset_all(CONTEXT, counter.name)

    def do_meter_array_set_rates(self, line: str) -> None:
        "Configure rates for an entire meter array: meter_array_set_rates <name> <rate_1>:<burst_1> <rate_2>:<burst_2> ..."
        name, *given = self._some(line, 1)
        meter = self._find("meter", self.program.meters, name)
        self.client.bm_meter_array_set_rates(CONTEXT, meter.name, _rates(given, meter.rates))

    def do_meter_set_rates(self, line: str) -> None:
        """Configure rates for a meter: meter_set_rates <name> <index> <rate_1>:<burst_1> <rate_2>:<burst_2> ...
        Rate uses units/microsecond and burst uses units where units is bytes or packets"""
        name, index_word, *given = self._some(line, 2)
        meter, index = self._cell("meter", self.program.meters, name, index_word)
        rates = _rates(given, meter.rates)
        if meter.table:
            self.client.bm_mt_set_meter_rates(CONTEXT, meter.table, index, rates)
        else:
            self.client.bm_meter_set_rates(CONTEXT, meter.name, index, rates)

    def do_meter_get_rates(self, line: str) -> None:
        "Retrieve rates for a meter: meter_get_rates <name> <index>"
        meter, index = self._cell("meter", self.program.meters, *self._args(line, 2))
        if meter.table:
            rates = self.client.bm_mt_get_meter_rates(CONTEXT, meter.table, index)
        else:
            rates = self.client.bm_meter_get_rates(CONTEXT, meter.name, index)
        if len(rates) != meter.rates:
            print("WARNING: expected", meter.rates, "rates but only received", len(rates))
        for at, rate in enumerate(rates):
            print(f"{at}: info rate = {rate.units_per_micros}, burst size = {rate.burst_size}")

    def do_register_read(self, line: str) -> None:
        "Read register value: register_read <name> [index]"
        name, *rest = self._some(line, 1)
        register = self._find("register", self.program.registers, name)
        if not rest:
            print("register index omitted, reading entire array", file=sys.stderr)
            print(f"{name}=", ", ".join(map(str, self.client.bm_register_read_all(CONTEXT, register.name))))
            return
        self._args(line, 2)
        index = words.integer(rest[0], "Bad format for index")
        print(f"{name}[{index}]=", self.client.bm_register_read(CONTEXT, register.name, index))

    def do_register_write(self, line: str) -> None:
        "Write register value: register_write <name> <index> <value>"
        name, index_word, value_word = self._args(line, 3)
        register, index = self._cell("register", self.program.registers, name, index_word)
        value = words.integer(value_word, "Bad format for value, must be an integer")
        if not -(1 << 63) <= value < 1 << 63:
            raise CommandError("Bad format for value, must fit in 64 bits with a sign")
        self.client.bm_register_write(CONTEXT, register.name, index, value)

    def do_register_reset(self, line: str) -> None:
        "Reset all the cells in the register array to 0: register_reset <name>"
        self.client.bm_register_reset(CONTEXT, self._find("register", self.program.registers, self._args(line, 1)[0]).name)

    def _value(self, line: str) -> tuple[str, bytes]:
        name, word = self._args(line, 2)
        value_set = self._find("parser value set", self.program.value_sets, name)
        data = words.value(word, value_set.bits)
        if int.from_bytes(data, "big") >> value_set.bits:
            raise CommandError(f"Input is too large, it should fit within {value_set.bits} bits")
        return value_set.name, data

    def do_pvs_add(self, line: str) -> None:
        "Add a value to a parser value set, where it may be already: pvs_add <pvs_name> <value>"
        self.client.bm_parse_vset_add(CONTEXT, *self._value(line))

    def do_pvs_remove(self, line: str) -> None:
        "Remove a value from a parser value set, where it need not be: pvs_remove <pvs_name> <value>"
        self.client.bm_parse_vset_remove(CONTEXT, *self._value(line))

    def do_pvs_get(self, line: str) -> None:
        "Print all values from a parser value set, one per line: pvs_get <pvs_name>"
        value_set = self._find("parser value set", self.program.value_sets, self._args(line, 1)[0])
        for data in self.client.bm_parse_vset_get(CONTEXT, value_set.name):
            print(data.hex())

    def do_pvs_clear(self, line: str) -> None:
        "Remove all values from a parser value set: pvs_clear <pvs_name>"
        value_set = self._find("parser value set", self.program.value_sets, self._args(line, 1)[0])
        self.client.bm_parse_vset_clear(CONTEXT, value_set.name)
