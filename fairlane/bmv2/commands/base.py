"""Common parts of the commands: the program, the arguments of a line, refusals."""

from __future__ import annotations

import cmd
import os
from collections.abc import Sequence
from typing import Any

from thriftpy2.thrift import TException

from fairlane.bmv2 import connection, interface, words
from fairlane.bmv2.program import RANGE, TERNARY, Named, Profile, Program, Table
from fairlane.bmv2.words import CommandError

_REFUSALS = {
    "InvalidTableOperation": ("table", "TableOperationErrorCode"),
    "InvalidCounterOperation": ("counter", "CounterOperationErrorCode"),
    "InvalidMeterOperation": ("meter", "MeterOperationErrorCode"),
    "InvalidRegisterOperation": ("register", "RegisterOperationErrorCode"),
    "InvalidLearnOperation": ("learn", "LearnOperationErrorCode"),
    "InvalidSwapOperation": ("swap", "SwapOperationErrorCode"),
    "InvalidDevMgrOperation": ("device manager", "DevMgrErrorCode"),
    "InvalidCrcOperation": ("crc", "CrcErrorCode"),
    "InvalidToeplitzHashOperation": ("Toeplitz hash", "ToeplitzHashErrorCode"),
    "InvalidParseVSetOperation": ("parser value set", "ParseVSetOperationErrorCode"),
    "InvalidMcOperation": ("PRE", "McOperationErrorCode"),
    "InvalidMirroringOperation": ("mirroring", "MirroringOperationErrorCode"),
}
"""By exception: of what operation it speaks, and the enumeration of its codes."""

CONTEXT = 0


class PreType:
    """Which of the services of multicast is used."""

    none, SimplePre, SimplePreLAG = range(3)

    @staticmethod
    def from_str(name: str) -> int:
        return {"None": PreType.none, "SimplePre": PreType.SimplePre, "SimplePreLAG": PreType.SimplePreLAG}[name]


_PROGRAM: list[Program] = []
"""The program that is talked about: one for all, as in BMv2's module."""


def load_json_config(standard_client: Any = None, json_path: str | None = None) -> None:
    """Take the program from a file, or from the switch."""
    take_program(Program(connection.get_json_config(standard_client, json_path)))


def take_program(program: Program) -> None:
    _PROGRAM[:] = [program]


class Commands(cmd.Cmd):
    """Commands are methods `do_NAME`, with the rest of the line as argument."""

    prompt = "RuntimeCmd: "
    intro = "Control utility for runtime P4 table manipulation"

    @staticmethod
    def get_thrift_services(pre_type: int) -> list[tuple[str | None, Any]]:
        pre = {PreType.SimplePre: "simple_pre", PreType.SimplePreLAG: "simple_pre_lag"}.get(pre_type)
        return [("standard", interface.client("standard")), (pre, pre and interface.client(pre))]

    def __init__(self, pre_type: int, standard_client: Any, mc_client: Any = None) -> None:
        super().__init__()
        self.pre_type, self.client, self.mc_client = pre_type, standard_client, mc_client

    @property
    def program(self) -> Program:
        if not _PROGRAM:
            load_json_config(self.client)
        return _PROGRAM[0]

    def onecmd(self, line: str) -> bool:
        try:
            return super().onecmd(line)
        except CommandError as error:
            print(f"{error.about}: {error}")
        except TException as refusal:
            name = type(refusal).__name__
            if name not in _REFUSALS:
                print(f"Error: {getattr(refusal, 'message', refusal)}")
            else:
                operation, codes = _REFUSALS[name]
                services = [interface.types(service) for service in interface.SERVICES]
                values = next(types[codes] for types in services if codes in types)._VALUES_TO_NAMES
                print(f"Invalid {operation} operation ({values.get(code := getattr(refusal, 'code', None), code)})")
        return False

    def emptyline(self) -> bool:
        return bool(self.lastcmd and self.onecmd(self.lastcmd))

    def completedefault(self, text: str, *_: Any) -> list[str]:
        """Names of the program's objects."""
        objects = (self.program.tables, self.program.actions, self.program.profiles, self.program.counters, self.program.meters)
        names = {name for every in (*objects, self.program.registers, self.program.value_sets) for name in every}
        return sorted(name for name in names if name.startswith(text))

    # What commands share

    def at_least_n_args(self, args: Sequence[str], count: int) -> None:
        if len(args) < count:
            raise CommandError("Insufficient number of args")

    def exactly_n_args(self, args: Sequence[str], count: int) -> None:
        if len(args) != count:
            raise CommandError(f"Wrong number of args, expected {count} but got {len(args)}")

    def parse_int(self, arg: str, name: str) -> int:
        return words.integer(arg, f"Bad format for {name}, expected integer")

    def _args(self, line: str, count: int) -> list[str]:
        args = line.split()
        self.exactly_n_args(args, count)
        return args

    def _some(self, line: str, count: int) -> list[str]:
        args = line.split()
        self.at_least_n_args(args, count)
        return args

    def _find(self, what: str, objects: Named[Any], name: str) -> Any:
        found = objects.find(name)
        if found is None:
            raise CommandError(f"Invalid {what} name ({name})")
        return found

    def _table(self, name: str, *, indirect: bool = False, selector: bool = False) -> Table:
        table: Table = self._find("table", self.program.tables, name)
        if selector and table.kind != "indirect_ws":
            raise CommandError("Cannot run this command on non-indirect table, or on indirect table with no selector")
        if indirect and table.kind == "simple":
            raise CommandError("Cannot run this command on non-indirect table")
        return table

    def _profile(self, name: str, *, selector: bool = False) -> Profile:
        profile: Profile = self._find("action profile", self.program.profiles, name)
        if selector and not profile.with_selection:
            raise CommandError("Cannot run this command on an action profile without selector")
        return profile

    def _table_action(self, table_name: str, name: str) -> tuple[Table, Any]:
        table = self._table(table_name)
        action = self.program.action(table, name)
        if action is None:
            raise CommandError(f"Table {table_name} has no action {name}")
        return table, action

    def _options(self, table: Table, args: list[str]) -> Any:
        """Takes the priority off the words of a command, where the table has priorities."""
        priority = 0
        if table.match_type in {TERNARY, RANGE}:
            try:
                priority = int(args.pop())
            except (ValueError, IndexError):
                raise CommandError("Table is ternary, but could not extract a valid priority from args") from None
        return interface.module("standard").BmAddEntryOptions(priority=priority)

    def _key_and_rest(self, name: str, table: Table, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """The words before and after `=>`."""
        at = args.index("=>") if "=>" in args else max(len(args) - 1, 0)
        if at != len(table.key):
            raise CommandError(f"Table {name} needs {len(table.key)} key fields")
        return list(args[:at]), list(args[at + 1 :])

    def _handle(self, word: str, what: str = "entry ") -> int:
        return words.integer(word, f"Bad format for {what}handle")

    def dump_data(self, of: Any) -> None:
        print(f"Action entry: {of.action_name} - {', '.join(data.hex() for data in of.action_data)}")

    # Of the command line itself

    def do_greet(self, _: str) -> None:
        print("hello")

    def do_EOF(self, _: str) -> bool:
        print()
        return True

    def do_shell(self, line: str) -> None:
        "Run a shell command"
        with os.popen(line) as output:
            print(output.read())
