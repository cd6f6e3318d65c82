"""Commands about multicast groups, their nodes, and LAGs."""

from __future__ import annotations

import json

from fairlane.bmv2 import words
from fairlane.bmv2.commands.base import CONTEXT, Commands, PreType
from fairlane.bmv2.words import CommandError


class GroupCommands(Commands):
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
        self.mc_client.bm_mc_mgrp_create(CONTEXT, group)

    def do_mc_mgrp_destroy(self, line: str) -> None:
        "Destroy multicast group: mc_mgrp_destroy <group id>"
        self._needs_pre()
        group = self._group(self._args(line, 1)[0])
        print("Destroying multicast group", group)
        self.mc_client.bm_mc_mgrp_destroy(CONTEXT, group)

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
        print("node was created with handle", self.mc_client.bm_mc_node_create(CONTEXT, rid, *maps))

    def do_mc_node_update(self, line: str) -> None:
        "Update multicast node: mc_node_update <node handle> <space-separated port list> [ | <space-separated lag list> ]"
        self._needs_pre()
        handle_word, *given = self._some(line, 2)
        node, maps = self._handle(handle_word, "node "), self._maps(given)
        print("Updating node", node, "with port map", " and lag map ".join(maps))
        self.mc_client.bm_mc_node_update(CONTEXT, node, *maps)

    def do_mc_node_associate(self, line: str) -> None:
        "Associate node to multicast group: mc_node_associate <group handle> <node handle>"
        self._needs_pre()
        group_word, node_word = self._args(line, 2)
        group, node = self._group(group_word), self._handle(node_word, "node ")
        print("Associating node", node, "to multicast group", group)
        self.mc_client.bm_mc_node_associate(CONTEXT, group, node)

    def do_mc_node_dissociate(self, line: str) -> None:
        "Dissociate node from multicast group: mc_node_dissociate <group handle> <node handle>"
        self._needs_pre()
        group_word, node_word = self._args(line, 2)
        group, node = self._group(group_word), self._handle(node_word, "node ")
        print("Dissociating node", node, "from multicast group", group)
        self.mc_client.bm_mc_node_dissociate(CONTEXT, group, node)

    def do_mc_node_destroy(self, line: str) -> None:
        "Destroy multicast node: mc_node_destroy <node handle>"
        self._needs_pre()
        node = self._handle(self._args(line, 1)[0], "node ")
        print("Destroying node", node)
        self.mc_client.bm_mc_node_destroy(CONTEXT, node)

    def do_mc_set_lag_membership(self, line: str) -> None:
        "Set lag membership of port list: mc_set_lag_membership <lag index> <space-separated port list>"
        self._needs_pre()
        if self.pre_type != PreType.SimplePreLAG:
            raise CommandError("Cannot execute this command with this type of PRE, SimplePreLAG is required")
        index_word, *ports = self._some(line, 2)
        index, members = words.integer(index_word, "Bad format for lag index"), words.port_map(ports, "lag")
        print("Setting lag membership:", index, "<-", members)
        self.mc_client.bm_mc_set_lag_membership(CONTEXT, index, members)

    def do_mc_dump(self, _: str) -> None:
        "Dump entries in multicast engine"
        self._needs_pre()
        entries = json.loads(self.mc_client.bm_mc_get_entries(CONTEXT))
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
