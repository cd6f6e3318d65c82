"""BMv2's run-time command line, `runtime_CLI`: its commands, their words, and what they print, since scripts read that."""

from __future__ import annotations

import argparse
import cmd
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from thriftpy2.thrift import TException

from fairlane.bmv2 import connection, interface, words
from fairlane.bmv2.program import KIND_NAMES, RANGE, TERNARY, Array, Named, Profile, Program, Table
from fairlane.bmv2.words import CommandError

__all__ = ["PreType", "RuntimeAPI", "get_parser", "load_json_config", "main", "thrift_connect"]

thrift_connect = connection.thrift_connect

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

_CONTEXT = 0


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
    _PROGRAM[:] = [Program(connection.get_json_config(standard_client, json_path))]


def get_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Commands for a switch with BMv2's Thrift services, read from standard input")
    parser.add_argument("--thrift-port", help="TCP port of the switch's Thrift services", type=int, default=9090)
    parser.add_argument("--thrift-ip", help="address of the switch", default="localhost")
    parser.add_argument("--json", help="the program's JSON (default: the switch's)")
    parser.add_argument("--pre", help="service of multicast groups", type=PreType.from_str, default=PreType.SimplePre)
    return parser


def _rates(given: Sequence[str], count: int) -> list[Any]:
    if len(given) != count:
        raise CommandError(f"Invalid number of rates, expected {count} but got {len(given)}")
    kind = interface.module("standard").BmMeterRateConfig
    try:
        pairs = [word.split(":") for word in given]
        return [kind(float(rate), int(burst)) for rate, burst in pairs]
    except ValueError:
        raise CommandError("Error while parsing rates") from None


class RuntimeAPI(cmd.Cmd):
    """The commands: `do_NAME` each, with the rest of the line."""

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

    # What the program has

    def _show(self, line: str, objects: Named[Any]) -> None:
        self._args(line, 0)
        for name in sorted(objects):
            print(objects[name])

    def do_show_tables(self, line: str) -> None:
        "List tables defined in the P4 program: show_tables"
        self._show(line, self.program.tables)

    def do_show_actions(self, line: str) -> None:
        "List actions defined in the P4 program: show_actions"
        self._show(line, self.program.actions)

    def do_show_pvs(self, line: str) -> None:
        "List parser value sets defined in the P4 program: show_pvs"
        self._show(line, self.program.value_sets)

    def do_table_show_actions(self, line: str) -> None:
        "List one table's actions as per the P4 program: table_show_actions <table_name>"
        table = self._table(self._args(line, 1)[0])
        for name in sorted(table.actions):
            print(table.actions[name])

    def do_table_info(self, line: str) -> None:
        "Show info about a table: table_info <table_name>"
        print(self._table(self._args(line, 1)[0]))
        print("*" * 80)
        self.do_table_show_actions(line)

    # Tables

    def do_table_set_default(self, line: str) -> None:
        "Set default action for a match table: table_set_default <table name> <action name> <action parameters>"
        name, action_name, *given = self._some(line, 2)
        table, action = self._table_action(name, action_name)
        data = words.action_data(action, given)
        print("Setting default action of", name)
        print(f"{'action:':20} {action_name}")
        print(f"{'runtime data:':20}", "\t".join(map(words.colons, data)))
        self.client.bm_mt_set_default_action(_CONTEXT, table.name, action.name, data)

    def do_table_reset_default(self, line: str) -> None:
        "Reset default entry for a match table: table_reset_default <table name>"
        self.client.bm_mt_reset_default_entry(_CONTEXT, self._table(self._args(line, 1)[0]).name)

    def do_table_num_entries(self, line: str) -> None:
        "Return the number of entries in a match table (direct or indirect): table_num_entries <table name>"
        print(self.client.bm_mt_get_num_entries(_CONTEXT, self._table(self._args(line, 1)[0]).name))

    def do_table_clear(self, line: str) -> None:
        "Clear all entries in a match table (direct or indirect), but not the default entry: table_clear <table name>"
        self.client.bm_mt_clear_entries(_CONTEXT, self._table(self._args(line, 1)[0]).name, False)

    def do_table_add(self, line: str) -> None:
        "Add entry to a match table: table_add <table name> <action name> <match fields> => <action parameters> [priority]"
        name, action_name, *rest = self._some(line, 3)
        table, action = self._table_action(name, action_name)
        options = self._options(table, rest)
        fields, given = self._key_and_rest(name, table, rest)
        data, key = words.action_data(action, given), words.match_key(table, fields)
        print("Adding entry to", KIND_NAMES[table.match_type], "match table", name)
        print(f"{'match key:':20}", "\t".join(map(words.shown, key)))
        print(f"{'action:':20} {action_name}")
        print(f"{'runtime data:':20}", "\t".join(map(words.colons, data)))
        handle = self.client.bm_mt_add_entry(_CONTEXT, table.name, key, action.name, data, options)
        print("Entry has been added with handle", handle)

    def do_table_modify(self, line: str) -> None:
        "Change an entry of a match table: table_modify <table name> <action name> <entry handle> [action parameters]"
        name, action_name, handle_word, *given = self._some(line, 3)
        table, action = self._table_action(name, action_name)
        handle = self._handle(handle_word)
        data = words.action_data(action, given[1:] if given[:1] == ["=>"] else given)
        print("Modifying entry", handle, "for", KIND_NAMES[table.match_type], "match table", name)
        self.client.bm_mt_modify_entry(_CONTEXT, table.name, handle, action.name, data)

    def do_table_delete(self, line: str) -> None:
        "Delete entry from a match table: table_delete <table name> <entry handle>"
        name, handle_word = self._args(line, 2)
        table, handle = self._table(name), self._handle(handle_word)
        print("Deleting entry", handle, "from", name)
        self.client.bm_mt_delete_entry(_CONTEXT, table.name, handle)

    def do_table_set_timeout(self, line: str) -> None:
        "Set a timeout in ms for a given entry; the table has to support timeouts: table_set_timeout <table_name> <entry handle> <timeout (ms)>"
        name, handle_word, timeout_word = self._args(line, 3)
        table = self._table(name)
        if not table.support_timeout:
            raise CommandError(f"Table {name} does not support entry timeouts")
        handle, timeout = self._handle(handle_word), words.integer(timeout_word, "Bad format for timeout")
        print("Setting a", timeout, "ms timeout for entry", handle)
        self.client.bm_mt_set_entry_ttl(_CONTEXT, table.name, handle, timeout)

    def do_table_dump(self, line: str) -> None:
        "Display entries in a match-table: table_dump <table name>"
        table = self._table(self._args(line, 1)[0])
        print("=" * 10)
        print("TABLE ENTRIES")
        for entry in self.client.bm_mt_get_entries(_CONTEXT, table.name):
            print("*" * 10)
            self._dump_entry(table, entry)
        if table.profile:
            self._dump_profile(table.profile)
        default = self.client.bm_mt_get_default_entry(_CONTEXT, table.name)
        print("=" * 10)
        print("Dumping default entry")
        self._dump_action(default)
        print("=" * 10)

    def do_table_dump_entry(self, line: str) -> None:
        "Display some information about a table entry: table_dump_entry <table name> <entry handle>"
        name, handle = self._args(line, 2)
        table = self._table(name)
        self._dump_entry(table, self.client.bm_mt_get_entry(_CONTEXT, table.name, self._handle(handle)))

    def do_table_dump_entry_from_key(self, line: str) -> None:
        "Display some information about a table entry: table_dump_entry_from_key <table name> <match fields> [priority]"
        name, *rest = self._some(line, 1)
        table = self._table(name)
        options = self._options(table, rest)
        key = words.match_key(table, rest)
        self._dump_entry(table, self.client.bm_mt_get_entry_from_key(_CONTEXT, table.name, key, options))

    def _dump_entry(self, table: Table, entry: Any) -> None:
        print("Dumping entry", hex(entry.entry_handle))
        print("Match key:")
        width = max(20, *(len(name) for name, _, _ in table.key), 0)
        for param, (name, _, _) in zip(entry.match_key, table.key, strict=True):
            print(f"* {name:{width}}: {KIND_NAMES[param.type].upper():10}{words.dumped(param)}")
        if entry.options.priority is not None and entry.options.priority >= 0:
            print("Priority:", entry.options.priority)
        self._dump_action(entry.action_entry)
        if entry.life is not None:
            print(f"Life: {entry.life.time_since_hit_ms}ms since hit, timeout is {entry.life.timeout_ms}ms")

    def _dump_action(self, entry: Any) -> None:
        kinds = interface.module("standard").BmActionEntryType
        if entry.action_type == kinds.ACTION_DATA:
            self._dump_data(entry)
        elif entry.action_type == kinds.MBR_HANDLE:
            print(f"Index: member({entry.mbr_handle})")
        elif entry.action_type == kinds.GRP_HANDLE:
            print(f"Index: group({entry.grp_handle})")
        else:
            print("EMPTY")

    def _dump_data(self, of: Any) -> None:
        print(f"Action entry: {of.action_name} - {', '.join(data.hex() for data in of.action_data)}")

    # Action profiles, and tables that use them

    def _profile_data(self, name: str, action_name: str, given: Sequence[str]) -> tuple[str, str, list[bytes]]:
        profile = self._profile(name)
        action = self.program.action(profile, action_name)
        if action is None:
            raise CommandError(f"Action profile '{name}' has no action '{action_name}'")
        return profile.name, action.name, words.action_data(action, given)

    def do_act_prof_create_member(self, line: str) -> None:
        "Add a member to an action profile: act_prof_create_member <action profile name> <action_name> [action parameters]"
        name, action_name, *given = self._some(line, 2)
        profile, action, data = self._profile_data(name, action_name, given)
        print("Member has been created with handle", self.client.bm_mt_act_prof_add_member(_CONTEXT, profile, action, data))

    def do_act_prof_modify_member(self, line: str) -> None:
        "Modify member in an action profile: act_prof_modify_member <action profile name> <action_name> <member_handle> [action parameters]"
        name, action_name, handle, *given = self._some(line, 3)
        profile, action, data = self._profile_data(name, action_name, given[1:] if given[:1] == ["=>"] else given)
        self.client.bm_mt_act_prof_modify_member(_CONTEXT, profile, self._handle(handle, "member "), action, data)

    def do_act_prof_delete_member(self, line: str) -> None:
        "Delete a member in an action profile: act_prof_delete_member <action profile name> <member handle>"
        name, handle = self._args(line, 2)
        self.client.bm_mt_act_prof_delete_member(_CONTEXT, self._profile(name).name, self._handle(handle, "member "))

    def do_act_prof_create_group(self, line: str) -> None:
        "Add a group to an action pofile: act_prof_create_group <action profile name>"
        profile = self._profile(self._args(line, 1)[0], selector=True)
        print("Group has been created with handle", self.client.bm_mt_act_prof_create_group(_CONTEXT, profile.name))

    def do_act_prof_delete_group(self, line: str) -> None:
        "Delete a group from an action profile: act_prof_delete_group <action profile name> <group handle>"
        name, handle = self._args(line, 2)
        self.client.bm_mt_act_prof_delete_group(_CONTEXT, self._profile(name, selector=True).name, self._handle(handle, "group "))

    def _member_and_group(self, line: str) -> tuple[str, int, int]:
        name, member, group = self._args(line, 3)
        return self._profile(name, selector=True).name, self._handle(member, "member "), self._handle(group, "group ")

    def do_act_prof_add_member_to_group(self, line: str) -> None:
        "Add member to group in an action profile: act_prof_add_member_to_group <action profile name> <member handle> <group handle>"
        self.client.bm_mt_act_prof_add_member_to_group(_CONTEXT, *self._member_and_group(line))

    def do_act_prof_remove_member_from_group(self, line: str) -> None:
        "Remove member from group in action profile: act_prof_remove_member_from_group <action profile name> <member handle> <group handle>"
        self.client.bm_mt_act_prof_remove_member_from_group(_CONTEXT, *self._member_and_group(line))

    def do_act_prof_dump(self, line: str) -> None:
        "Display entries in an action profile: act_prof_dump <action profile name>"
        self._dump_profile(self._profile(self._args(line, 1)[0]))

    def do_act_prof_dump_member(self, line: str) -> None:
        "Display some information about a member: act_prof_dump_member <action profile name> <member handle>"
        name, handle = self._args(line, 2)
        self._dump_member(self.client.bm_mt_act_prof_get_member(_CONTEXT, self._profile(name).name, self._handle(handle, "member ")))

    def do_act_prof_dump_group(self, line: str) -> None:
        "Display some information about a group: act_prof_dump_group <action profile name> <group handle>"
        name, handle = self._args(line, 2)
        self._dump_group(self.client.bm_mt_act_prof_get_group(_CONTEXT, self._profile(name).name, self._handle(handle, "group ")))

    def _dump_profile(self, profile: Profile) -> None:
        print("=" * 10)
        print("MEMBERS")
        for member in self.client.bm_mt_act_prof_get_members(_CONTEXT, profile.name):
            print("*" * 10)
            self._dump_member(member)
        if profile.with_selection:
            print("=" * 10)
            print("GROUPS")
            for group in self.client.bm_mt_act_prof_get_groups(_CONTEXT, profile.name):
                print("*" * 10)
                self._dump_group(group)

    def _dump_member(self, member: Any) -> None:
        print("Dumping member", member.mbr_handle)
        self._dump_data(member)

    def _dump_group(self, group: Any) -> None:
        print("Dumping group", group.grp_handle)
        print(f"Members: [{', '.join(map(str, group.mbr_handles))}]")

    def _indirect_add(self, line: str, call: Callable[..., int], *, selector: bool = False) -> None:
        name, *rest = self._some(line, 2)
        table = self._table(name, indirect=True, selector=selector)
        options = self._options(table, rest)
        fields, handles = self._key_and_rest(name, table, rest)
        if len(handles) != 1:
            raise CommandError("Invalid arguments, could not find handle")
        handle, key = self._handle(handles[0], ""), words.match_key(table, fields)
        print("Adding entry to indirect match table", table.name)
        print("Entry has been added with handle", call(_CONTEXT, table.name, key, handle, options))

    def do_table_indirect_add(self, line: str) -> None:
        "Add entry to an indirect match table: table_indirect_add <table name> <match fields> => <member handle> [priority]"
        self._indirect_add(line, self.client.bm_mt_indirect_add_entry)

    def do_table_indirect_add_with_group(self, line: str) -> None:
        "Add entry to an indirect match table: table_indirect_add_with_group <table name> <match fields> => <group handle> [priority]"
        self._indirect_add(line, self.client.bm_mt_indirect_ws_add_entry, selector=True)

    def do_table_indirect_delete(self, line: str) -> None:
        "Delete entry from an indirect match table: table_indirect_delete <table name> <entry handle>"
        name, handle_word = self._args(line, 2)
        table, handle = self._table(name, indirect=True), self._handle(handle_word)
        print("Deleting entry", handle, "from", name)
        self.client.bm_mt_indirect_delete_entry(_CONTEXT, table.name, handle)

    def do_table_indirect_set_default(self, line: str) -> None:
        "Set default member for indirect match table: table_indirect_set_default <table name> <member handle>"
        name, handle = self._args(line, 2)
        self.client.bm_mt_indirect_set_default_member(_CONTEXT, self._table(name, indirect=True).name, self._handle(handle, ""))

    def do_table_indirect_set_default_with_group(self, line: str) -> None:
        "Set default group for indirect match table: table_indirect_set_default_with_group <table name> <group handle>"
        name, handle = self._args(line, 2)
        table = self._table(name, indirect=True, selector=True)
        self.client.bm_mt_indirect_ws_set_default_group(_CONTEXT, table.name, self._handle(handle, ""))

    def do_table_indirect_reset_default(self, line: str) -> None:
        "Reset default entry for indirect match table: table_indirect_reset_default <table name>"
        self.client.bm_mt_indirect_reset_default_entry(_CONTEXT, self._table(self._args(line, 1)[0]).name)

    # Multicast

    def _needs_pre(self) -> None:
        if self.pre_type == PreType.none:
            raise CommandError("Cannot execute this command without packet replication engine")

    def _group(self, word: str) -> int:
        return words.integer(word, "Bad format for multicast group id")

    def do_mc_mgrp_create(self, line: str) -> None:
        "Create multicast group: mc_mgrp_create <group id>"
        self._needs_pre()
        group = self._group(self._args(line, 1)[0])
        print("Creating multicast group", group)
        self.mc_client.bm_mc_mgrp_create(_CONTEXT, group)

    def do_mc_mgrp_destroy(self, line: str) -> None:
        "Destroy multicast group: mc_mgrp_destroy <group id>"
        self._needs_pre()
        group = self._group(self._args(line, 1)[0])
        print("Destroying multicast group", group)
        self.mc_client.bm_mc_mgrp_destroy(_CONTEXT, group)

    def _maps(self, given: list[str]) -> list[str]:
        """Maps of ports, and of LAGs where there are some."""
        at = given.index("|") if "|" in given else len(given)
        maps = [words.port_map(given[:at])]
        return [*maps, words.port_map(given[at + 1 :], "lag")] if self.pre_type == PreType.SimplePreLAG else maps

    def do_mc_node_create(self, line: str) -> None:
        "Create multicast node: mc_node_create <rid> <space-separated port list> [ | <space-separated lag list> ]"
        self._needs_pre()
        rid_word, *given = self._some(line, 1)
        rid, maps = words.integer(rid_word, "Bad format for rid"), self._maps(given)
        if len(maps) == 1:
            print("Creating node with rid", rid, "and with port map", maps[0])
        else:
            print("Creating node with rid", rid, ", port map", maps[0], "and lag map", maps[1])
        print("node was created with handle", self.mc_client.bm_mc_node_create(_CONTEXT, rid, *maps))

    def do_mc_node_update(self, line: str) -> None:
        "Update multicast node: mc_node_update <node handle> <space-separated port list> [ | <space-separated lag list> ]"
        self._needs_pre()
        handle_word, *given = self._some(line, 2)
        node, maps = self._handle(handle_word, "node "), self._maps(given)
        print("Updating node", node, "with port map", " and lag map ".join(maps))
        self.mc_client.bm_mc_node_update(_CONTEXT, node, *maps)

    def do_mc_node_associate(self, line: str) -> None:
        "Associate node to multicast group: mc_node_associate <group handle> <node handle>"
        self._needs_pre()
        group_word, node_word = self._args(line, 2)
        group, node = self._group(group_word), self._handle(node_word, "node ")
        print("Associating node", node, "to multicast group", group)
        self.mc_client.bm_mc_node_associate(_CONTEXT, group, node)

    def do_mc_node_dissociate(self, line: str) -> None:
        "Dissociate node from multicast group: mc_node_dissociate <group handle> <node handle>"
        self._needs_pre()
        group_word, node_word = self._args(line, 2)
        group, node = self._group(group_word), self._handle(node_word, "node ")
        print("Dissociating node", node, "from multicast group", group)
        self.mc_client.bm_mc_node_dissociate(_CONTEXT, group, node)

    def do_mc_node_destroy(self, line: str) -> None:
        "Destroy multicast node: mc_node_destroy <node handle>"
        self._needs_pre()
        node = self._handle(self._args(line, 1)[0], "node ")
        print("Destroying node", node)
        self.mc_client.bm_mc_node_destroy(_CONTEXT, node)

    def do_mc_set_lag_membership(self, line: str) -> None:
        "Set lag membership of port list: mc_set_lag_membership <lag index> <space-separated port list>"
        self._needs_pre()
        if self.pre_type != PreType.SimplePreLAG:
            raise CommandError("Cannot execute this command with this type of PRE, SimplePreLAG is required")
        index_word, *ports = self._some(line, 2)
        index, members = words.integer(index_word, "Bad format for lag index"), words.port_map(ports, "lag")
        print("Setting lag membership:", index, "<-", members)
        self.mc_client.bm_mc_set_lag_membership(_CONTEXT, index, members)

    def do_mc_dump(self, _: str) -> None:
        "Dump entries in multicast engine"
        self._needs_pre()
        entries = json.loads(self.mc_client.bm_mc_get_entries(_CONTEXT))
        nodes = {node["handle"]: node for node in entries["l1_handles"]}
        ports = {node["handle"]: node for node in entries["l2_handles"]}
        print("=" * 10)
        print("MC ENTRIES")
        for group in entries["mgrps"]:
            print("*" * 10)
            print(f"mgrp({group['id']})")
            for handle in group["l1_handles"]:
                to = ports[nodes[handle]["l2_handle"]]
                places = f"(ports=[{', '.join(map(str, to['ports']))}], lags=[{', '.join(map(str, to['lags']))}])"
                print(f"  -> (L1h={handle}, rid={nodes[handle]['rid']}) -> {places}")
        print("=" * 10)
        print("LAGS")
        for lag in entries.get("lags", []):
            print(f"lag({lag['id']}) -> ports=[{', '.join(map(str, lag['ports']))}]")
        if "lags" not in entries:
            print("None for this PRE type")
        print("=" * 10)

    # Counters, meters, registers, value sets

    def _cell(self, what: str, arrays: Named[Array], name: str, index: str) -> tuple[Array, int]:
        return self._find(what, arrays, name), words.integer(index, "Bad format for index")

    def do_counter_read(self, line: str) -> None:
        "Read counter value: counter_read <name> <index>"
        name, index_word = self._args(line, 2)
        counter, index = self._cell("counter", self.program.counters, name, index_word)
        if counter.table:
            print("this is the direct counter for table", counter.table)
            value = self.client.bm_mt_read_counter(_CONTEXT, counter.table, index)
        else:
            value = self.client.bm_counter_read(_CONTEXT, counter.name, index)
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
            self.client.bm_mt_write_counter(_CONTEXT, counter.table, index, value)
        else:
            self.client.bm_counter_write(_CONTEXT, counter.name, index, value)
        print(f"{name}[{index}] has been updated")

    def do_counter_reset(self, line: str) -> None:
        "Reset counter: counter_reset <name>"
        counter = self._find("counter", self.program.counters, self._args(line, 1)[0])
        if counter.table:
            print("this is the direct counter for table", counter.table)
            self.client.bm_mt_reset_counters(_CONTEXT, counter.table)
        else:
            self.client.bm_counter_reset_all(_CONTEXT, counter.name)

    def do_meter_array_set_rates(self, line: str) -> None:
        "Configure rates for an entire meter array: meter_array_set_rates <name> <rate_1>:<burst_1> <rate_2>:<burst_2> ..."
        name, *given = self._some(line, 1)
        meter = self._find("meter", self.program.meters, name)
        self.client.bm_meter_array_set_rates(_CONTEXT, meter.name, _rates(given, meter.rates))

    def do_meter_set_rates(self, line: str) -> None:
        """Configure rates for a meter: meter_set_rates <name> <index> <rate_1>:<burst_1> <rate_2>:<burst_2> ...
        Rate uses units/microsecond and burst uses units where units is bytes or packets"""
        name, index_word, *given = self._some(line, 2)
        meter, index = self._cell("meter", self.program.meters, name, index_word)
        rates = _rates(given, meter.rates)
        if meter.table:
            self.client.bm_mt_set_meter_rates(_CONTEXT, meter.table, index, rates)
        else:
            self.client.bm_meter_set_rates(_CONTEXT, meter.name, index, rates)

    def do_meter_get_rates(self, line: str) -> None:
        "Retrieve rates for a meter: meter_get_rates <name> <index>"
        meter, index = self._cell("meter", self.program.meters, *self._args(line, 2))
        if meter.table:
            rates = self.client.bm_mt_get_meter_rates(_CONTEXT, meter.table, index)
        else:
            rates = self.client.bm_meter_get_rates(_CONTEXT, meter.name, index)
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
            print(f"{name}=", ", ".join(map(str, self.client.bm_register_read_all(_CONTEXT, register.name))))
            return
        self._args(line, 2)
        index = words.integer(rest[0], "Bad format for index")
        print(f"{name}[{index}]=", self.client.bm_register_read(_CONTEXT, register.name, index))

    def do_register_write(self, line: str) -> None:
        "Write register value: register_write <name> <index> <value>"
        name, index_word, value_word = self._args(line, 3)
        register, index = self._cell("register", self.program.registers, name, index_word)
        value = words.integer(value_word, "Bad format for value, must be an integer")
        if not -(1 << 63) <= value < 1 << 63:
            raise CommandError("Bad format for value, must fit in 64 bits with a sign")
        self.client.bm_register_write(_CONTEXT, register.name, index, value)

    def do_register_reset(self, line: str) -> None:
        "Reset all the cells in the register array to 0: register_reset <name>"
        self.client.bm_register_reset(_CONTEXT, self._find("register", self.program.registers, self._args(line, 1)[0]).name)

    def _value(self, line: str) -> tuple[str, bytes]:
        name, word = self._args(line, 2)
        value_set = self._find("parser value set", self.program.value_sets, name)
        data = words.value(word, value_set.bits)
        if int.from_bytes(data, "big") >> value_set.bits:
            raise CommandError(f"Input is too large, it should fit within {value_set.bits} bits")
        return value_set.name, data

    def do_pvs_add(self, line: str) -> None:
        "Add a value to a parser value set, where it may be already: pvs_add <pvs_name> <value>"
        self.client.bm_parse_vset_add(_CONTEXT, *self._value(line))

    def do_pvs_remove(self, line: str) -> None:
        "Remove a value from a parser value set, where it need not be: pvs_remove <pvs_name> <value>"
        self.client.bm_parse_vset_remove(_CONTEXT, *self._value(line))

    def do_pvs_get(self, line: str) -> None:
        "Print all values from a parser value set, one per line: pvs_get <pvs_name>"
        value_set = self._find("parser value set", self.program.value_sets, self._args(line, 1)[0])
        for data in self.client.bm_parse_vset_get(_CONTEXT, value_set.name):
            print(data.hex())

    def do_pvs_clear(self, line: str) -> None:
        "Remove all values from a parser value set: pvs_clear <pvs_name>"
        value_set = self._find("parser value set", self.program.value_sets, self._args(line, 1)[0])
        self.client.bm_parse_vset_clear(_CONTEXT, value_set.name)

    # The switch

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
        _PROGRAM[:] = [program]

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
        call(_CONTEXT, name, kind(*numbers, *map(words.boolean, given[3:])))

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
        self.client.bm_set_toeplitz_hash_key(_CONTEXT, name, key)


def _by_table(profile_command: str, *, selector: bool = False, deprecated: bool = True) -> Callable[[RuntimeAPI, str], None]:
    """An older command that names a table in place of its action profile."""

    def command(self: RuntimeAPI, line: str) -> None:
        name, *rest = self._some(line, 1)
        profile = self._table(name, indirect=True, selector=selector).profile
        if profile is None:
            raise CommandError("Cannot run this command on non-indirect table")
        if deprecated:
            if profile.tables > 1:
                raise CommandError("Legacy command does not work with shared action profiles")
            print(f"This is a deprecated command, use '{profile_command}' instead", file=sys.stderr)
        getattr(self, f"do_{profile_command}")(" ".join([profile.name, *rest]))

    command.__doc__ = f"{'[DEPRECATED!] ' if deprecated else ''}As {profile_command}, with a table's name in place of its action profile's"
    return command


for _older, _command, _selector in (
    ("table_indirect_create_member", "act_prof_create_member", False),
    ("table_indirect_delete_member", "act_prof_delete_member", False),
    ("table_indirect_modify_member", "act_prof_modify_member", False),
    ("table_indirect_create_group", "act_prof_create_group", True),
    ("table_indirect_delete_group", "act_prof_delete_group", True),
    ("table_indirect_add_member_to_group", "act_prof_add_member_to_group", True),
    ("table_indirect_remove_member_from_group", "act_prof_remove_member_from_group", True),
):
    setattr(RuntimeAPI, f"do_{_older}", _by_table(_command, selector=_selector))
RuntimeAPI.do_table_dump_member = _by_table("act_prof_dump_member", deprecated=False)  # type: ignore[attr-defined]
RuntimeAPI.do_table_dump_group = _by_table("act_prof_dump_group", deprecated=False)  # type: ignore[attr-defined]


def main() -> None:
    given = get_parser().parse_args()
    standard, multicast = thrift_connect(given.thrift_ip, given.thrift_port, RuntimeAPI.get_thrift_services(given.pre))
    load_json_config(standard, given.json)
    RuntimeAPI(given.pre, standard, multicast).cmdloop()
