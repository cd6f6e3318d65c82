"""Commands about the program's declarations, and about tables and their entries."""

from __future__ import annotations

from typing import Any

from fairlane.bmv2 import interface, words
from fairlane.bmv2.commands.base import CONTEXT
from fairlane.bmv2.commands.profiles import ProfileCommands
from fairlane.bmv2.program import KIND_NAMES, Named, Table
from fairlane.bmv2.words import CommandError


class TableCommands(ProfileCommands):
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
        self.client.bm_mt_set_default_action(CONTEXT, table.name, action.name, data)

    def do_table_reset_default(self, line: str) -> None:
        "Reset default entry for a match table: table_reset_default <table name>"
        self.client.bm_mt_reset_default_entry(CONTEXT, self._table(self._args(line, 1)[0]).name)

    def do_table_num_entries(self, line: str) -> None:
        "Return the number of entries in a match table (direct or indirect): table_num_entries <table name>"
        print(self.client.bm_mt_get_num_entries(CONTEXT, self._table(self._args(line, 1)[0]).name))

    def do_table_clear(self, line: str) -> None:
        "Clear all entries in a match table (direct or indirect), but not the default entry: table_clear <table name>"
        self.client.bm_mt_clear_entries(CONTEXT, self._table(self._args(line, 1)[0]).name, False)

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
        handle = self.client.bm_mt_add_entry(CONTEXT, table.name, key, action.name, data, options)
        print("Entry has been added with handle", handle)

    def do_table_modify(self, line: str) -> None:
        "Change an entry of a match table: table_modify <table name> <action name> <entry handle> [action parameters]"
        name, action_name, handle_word, *given = self._some(line, 3)
        table, action = self._table_action(name, action_name)
        handle = self._handle(handle_word)
        data = words.action_data(action, given[1:] if given[:1] == ["=>"] else given)
        print("Modifying entry", handle, "for", KIND_NAMES[table.match_type], "match table", name)
        self.client.bm_mt_modify_entry(CONTEXT, table.name, handle, action.name, data)

    def do_table_delete(self, line: str) -> None:
        "Delete entry from a match table: table_delete <table name> <entry handle>"
        name, handle_word = self._args(line, 2)
        table, handle = self._table(name), self._handle(handle_word)
        print("Deleting entry", handle, "from", name)
        self.client.bm_mt_delete_entry(CONTEXT, table.name, handle)

    def do_table_set_timeout(self, line: str) -> None:
        "Set a timeout in ms for a given entry; the table has to support timeouts: table_set_timeout <table_name> <entry handle> <timeout (ms)>"
        name, handle_word, timeout_word = self._args(line, 3)
        table = self._table(name)
        if not table.support_timeout:
            raise CommandError(f"Table {name} does not support entry timeouts")
        handle, timeout = self._handle(handle_word), words.integer(timeout_word, "Bad format for timeout")
        print("Setting a", timeout, "ms timeout for entry", handle)
        self.client.bm_mt_set_entry_ttl(CONTEXT, table.name, handle, timeout)

    def do_table_dump(self, line: str) -> None:
        "Display entries in a match-table: table_dump <table name>"
        table = self._table(self._args(line, 1)[0])
        print("=" * 10)
        print("TABLE ENTRIES")
        for entry in self.client.bm_mt_get_entries(CONTEXT, table.name):
            print("*" * 10)
            self._dump_entry(table, entry)
        if table.profile:
            self._dump_profile(table.profile)
        default = self.client.bm_mt_get_default_entry(CONTEXT, table.name)
        print("=" * 10)
        print("Dumping default entry")
        self._dump_action(default)
        print("=" * 10)

    def do_table_dump_entry(self, line: str) -> None:
        "Display some information about a table entry: table_dump_entry <table name> <entry handle>"
        name, handle = self._args(line, 2)
        table = self._table(name)
        self._dump_entry(table, self.client.bm_mt_get_entry(CONTEXT, table.name, self._handle(handle)))

    def do_table_dump_entry_from_key(self, line: str) -> None:
        "Display some information about a table entry: table_dump_entry_from_key <table name> <match fields> [priority]"
        name, *rest = self._some(line, 1)
        table = self._table(name)
        options = self._options(table, rest)
        key = words.match_key(table, rest)
        self._dump_entry(table, self.client.bm_mt_get_entry_from_key(CONTEXT, table.name, key, options))

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
            self.dump_data(entry)
        elif entry.action_type == kinds.MBR_HANDLE:
            print(f"Index: member({entry.mbr_handle})")
        elif entry.action_type == kinds.GRP_HANDLE:
            print(f"Index: group({entry.grp_handle})")
        else:
            print("EMPTY")
