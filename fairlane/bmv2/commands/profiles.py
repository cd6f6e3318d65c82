"""Commands about action profiles, and about tables that use them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from fairlane.bmv2 import words
from fairlane.bmv2.commands.base import CONTEXT, Commands
from fairlane.bmv2.program import Profile
from fairlane.bmv2.words import CommandError


class ProfileCommands(Commands):
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
        print("Member has been created with handle", self.client.bm_mt_act_prof_add_member(CONTEXT, profile, action, data))

    def do_act_prof_modify_member(self, line: str) -> None:
        "Modify member in an action profile: act_prof_modify_member <action profile name> <action_name> <member_handle> [action parameters]"
        name, action_name, handle, *given = self._some(line, 3)
        profile, action, data = self._profile_data(name, action_name, given[1:] if given[:1] == ["=>"] else given)
        self.client.bm_mt_act_prof_modify_member(CONTEXT, profile, self._handle(handle, "member "), action, data)

    def do_act_prof_delete_member(self, line: str) -> None:
        "Delete a member in an action profile: act_prof_delete_member <action profile name> <member handle>"
        name, handle = self._args(line, 2)
        self.client.bm_mt_act_prof_delete_member(CONTEXT, self._profile(name).name, self._handle(handle, "member "))

    def do_act_prof_create_group(self, line: str) -> None:
        "Add a group to an action pofile: act_prof_create_group <action profile name>"
        profile = self._profile(self._args(line, 1)[0], selector=True)
        print("Group has been created with handle", self.client.bm_mt_act_prof_create_group(CONTEXT, profile.name))

    def do_act_prof_delete_group(self, line: str) -> None:
        "Delete a group from an action profile: act_prof_delete_group <action profile name> <group handle>"
        name, handle = self._args(line, 2)
        self.client.bm_mt_act_prof_delete_group(CONTEXT, self._profile(name, selector=True).name, self._handle(handle, "group "))

    def _member_and_group(self, line: str) -> tuple[str, int, int]:
        name, member, group = self._args(line, 3)
        return self._profile(name, selector=True).name, self._handle(member, "member "), self._handle(group, "group ")

    def do_act_prof_add_member_to_group(self, line: str) -> None:
        "Add member to group in an action profile: act_prof_add_member_to_group <action profile name> <member handle> <group handle>"
        self.client.bm_mt_act_prof_add_member_to_group(CONTEXT, *self._member_and_group(line))

    def do_act_prof_remove_member_from_group(self, line: str) -> None:
        "Remove member from group in action profile: act_prof_remove_member_from_group <action profile name> <member handle> <group handle>"
        self.client.bm_mt_act_prof_remove_member_from_group(CONTEXT, *self._member_and_group(line))

    def do_act_prof_dump(self, line: str) -> None:
        "Display entries in an action profile: act_prof_dump <action profile name>"
        self._dump_profile(self._profile(self._args(line, 1)[0]))

    def do_act_prof_dump_member(self, line: str) -> None:
        "Display some information about a member: act_prof_dump_member <action profile name> <member handle>"
        name, handle = self._args(line, 2)
        self._dump_member(self.client.bm_mt_act_prof_get_member(CONTEXT, self._profile(name).name, self._handle(handle, "member ")))

    def do_act_prof_dump_group(self, line: str) -> None:
        "Display some information about a group: act_prof_dump_group <action profile name> <group handle>"
        name, handle = self._args(line, 2)
        self._dump_group(self.client.bm_mt_act_prof_get_group(CONTEXT, self._profile(name).name, self._handle(handle, "group ")))

    def _dump_profile(self, profile: Profile) -> None:
        print("=" * 10)
        print("MEMBERS")
        for member in self.client.bm_mt_act_prof_get_members(CONTEXT, profile.name):
            print("*" * 10)
            self._dump_member(member)
        if profile.with_selection:
            print("=" * 10)
            print("GROUPS")
            for group in self.client.bm_mt_act_prof_get_groups(CONTEXT, profile.name):
                print("*" * 10)
                self._dump_group(group)

    def _dump_member(self, member: Any) -> None:
        print("Dumping member", member.mbr_handle)
        self.dump_data(member)

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
        print("Entry has been added with handle", call(CONTEXT, table.name, key, handle, options))

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
        self.client.bm_mt_indirect_delete_entry(CONTEXT, table.name, handle)

    def do_table_indirect_set_default(self, line: str) -> None:
        "Set default member for indirect match table: table_indirect_set_default <table name> <member handle>"
        name, handle = self._args(line, 2)
        self.client.bm_mt_indirect_set_default_member(CONTEXT, self._table(name, indirect=True).name, self._handle(handle, ""))

    def do_table_indirect_set_default_with_group(self, line: str) -> None:
        "Set default group for indirect match table: table_indirect_set_default_with_group <table name> <group handle>"
        name, handle = self._args(line, 2)
        table = self._table(name, indirect=True, selector=True)
        self.client.bm_mt_indirect_ws_set_default_group(CONTEXT, table.name, self._handle(handle, ""))

    def do_table_indirect_reset_default(self, line: str) -> None:
        "Reset default entry for indirect match table: table_indirect_reset_default <table name>"
        self.client.bm_mt_indirect_reset_default_entry(CONTEXT, self._table(self._args(line, 1)[0]).name)


def _by_table(profile_command: str, *, selector: bool = False, deprecated: bool = True) -> Callable[[ProfileCommands, str], None]:
    """An older command that names a table in place of its action profile."""

    def command(self: ProfileCommands, line: str) -> None:
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
    setattr(ProfileCommands, f"do_{_older}", _by_table(_command, selector=_selector))
ProfileCommands.do_table_dump_member = _by_table("act_prof_dump_member", deprecated=False)  # type: ignore[attr-defined]
ProfileCommands.do_table_dump_group = _by_table("act_prof_dump_group", deprecated=False)  # type: ignore[attr-defined]
