"""Commands about the switch itself: ports, configurations, state, hashes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlane.bmv2 import interface, words
from fairlane.bmv2.commands.base import CONTEXT, Commands, take_program
from fairlane.bmv2.program import Program
from fairlane.bmv2.words import CommandError


class PortCommands(Commands):
    def do_load_new_config_file(self, line: str) -> None:
        "Load new json config: load_new_config_file <path to .json file>"
        path = Path(self._args(line, 1)[0])
        if not path.is_file():
            raise CommandError("Not a valid filename")
        print("Loading new Json config")
        text = path.read_text(encoding="utf-8")
        try:
            program = Program(text)
        except (ValueError, KeyError, TypeError):
            raise CommandError("Not a valid JSON file") from None
        self.client.bm_load_new_config(text)
        take_program(program)

    def do_swap_configs(self, _: str) -> None:
        "Swap the 2 existing configs, need to have called load_new_config_file before"
        print("Swapping configs")
        self.client.bm_swap_configs()

    def do_port_add(self, line: str) -> None:
        "Add a port to the switch: port_add <iface_name> <port_num> [pcap_path]"
        name, number, *pcap = self._some(line, 2)
        port = words.integer(number, "Bad format for port_num, must be an integer")
        self.client.bm_dev_mgr_add_port(name, port, pcap[0] if pcap else "")

    def do_port_remove(self, line: str) -> None:
        "Removes a port from the switch: port_remove <port_num>"
        self.client.bm_dev_mgr_remove_port(words.integer(self._args(line, 1)[0], "Bad format for port_num, must be an integer"))

    def do_show_ports(self, line: str) -> None:
        "Shows the ports connected to the switch: show_ports"
        self._args(line, 0)
        ports = self.client.bm_dev_mgr_show_ports()
        print(f"{'port #':^10}{'iface name':^20}{'status':^10}extra info")
        print("=" * 50)
        for port in ports:
            extra = "; ".join(f"{key}={value}" for key, value in port.extra.items())
            print(f"{port.port_num:^10}{port.iface_name:^20}{'UP' if port.is_up else 'DOWN':^10}{extra}")

    def do_switch_info(self, line: str) -> None:
        "Show some basic info about the switch: switch_info"
        self._args(line, 0)
        info = self.client.bm_mgmt_get_info()
        names = [spec[2] for spec in info.thrift_spec[1:]]
        width = 5 + max(map(len, names))
        for name in names:
            print(f"{name:{width}}: {getattr(info, name)}")

    def do_reset_state(self, line: str) -> None:
        "Reset all state in the switch (table entries, registers, ...), but P4 config is preserved: reset_state"
        self._args(line, 0)
        self.client.bm_reset_state()

    def do_write_config_to_file(self, line: str) -> None:
        "Retrieves the JSON config currently used by the switch and dumps it to user-specified file"
        path = Path(self._args(line, 1)[0])
        path.write_text(self.client.bm_get_config(), encoding="utf-8")

    def do_serialize_state(self, line: str) -> None:
        "Serialize the switch state and dumps it to user-specified file"
        path = Path(self._args(line, 1)[0])
        path.write_text(self.client.bm_serialize_state(), encoding="utf-8")

    def _set_crc(self, line: str, bits: int, kind: Any, call: Callable[..., None]) -> None:
        name, *given = self._args(line, 6)
        if self.program.crcs.get(name) != bits:
            raise CommandError(f"Invalid crc{bits}_custom name ({name})")
        numbers = [words.signed(word, bits) for word in given[:3]]
        call(CONTEXT, name, kind(*numbers, *map(words.boolean, given[3:])))

    def do_set_crc16_parameters(self, line: str) -> None:
        "Parameters of a custom crc16: set_crc16_parameters <name> <polynomial> <initial> <final xor> <reflect data?> <reflect remainder?>"
        self._set_crc(line, 16, interface.module("standard").BmCrc16Config, self.client.bm_set_crc16_custom_parameters)

    def do_set_crc32_parameters(self, line: str) -> None:
        "Parameters of a custom crc32: set_crc32_parameters <name> <polynomial> <initial> <final xor> <reflect data?> <reflect remainder?>"
        self._set_crc(line, 32, interface.module("standard").BmCrc32Config, self.client.bm_set_crc32_custom_parameters)

    def do_set_toeplitz_hash_key(self, line: str) -> None:
        "Set Toeplitz hash key: set_toeplitz_hash_key <name> <key in hex string>"
        name, text = self._args(line, 2)
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise CommandError("Toeplitz hash key must be a hex string") from None
        if len(key) % 4:
            raise CommandError("Toeplitz hash key must be a multiple of 4 bytes in length")
        self.client.bm_set_toeplitz_hash_key(CONTEXT, name, key)
