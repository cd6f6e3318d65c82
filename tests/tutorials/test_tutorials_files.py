"""Files in the form of the P4 tutorials: what is read, what is made of it, and what is said of those that cannot be used."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from fairlane import probes
from fairlane.controller.p4info import P4Info
from fairlane.errors import Refusal
from fairlane.fabrics import targets
from fairlane.inputs import located_json
from fairlane.inputs.located_toml import ConfigError
from fairlane.tutorials import commands, programs, runtime, topology

EXERCISE = Path(__file__).parent / "exercise"
TOPOLOGY = EXERCISE / "pair" / "topology.json"

INFO = """
actions { preamble { id: 1 name: "In.send" alias: "send" } params { id: 1 name: "mac" bitwidth: 48 } params { id: 2 name: "port" bitwidth: 9 } }
actions { preamble { id: 2 name: "In.drop" alias: "drop" } }
actions { preamble { id: 3 name: "In.other" alias: "other" } params { id: 1 name: "number" bitwidth: 8 } }
tables { preamble { id: 10 name: "In.lpm" alias: "lpm" } match_fields { id: 1 name: "dst" bitwidth: 32 match_type: LPM }
         action_refs { id: 1 } action_refs { id: 2 } }
tables { preamble { id: 11 name: "In.acl" alias: "acl" }
         match_fields { id: 1 name: "src" bitwidth: 32 match_type: TERNARY } match_fields { id: 2 name: "ttl" bitwidth: 8 match_type: RANGE }
         match_fields { id: 3 name: "kind" bitwidth: 8 match_type: OPTIONAL } action_refs { id: 2 } action_refs { id: 3 } }
tables { preamble { id: 12 name: "In.exact" alias: "exact" } match_fields { id: 1 name: "mac" bitwidth: 48 match_type: EXACT }
         match_fields { id: 2 name: "v6" bitwidth: 128 match_type: EXACT } action_refs { id: 1 } }
"""


@pytest.fixture(scope="module")
def info() -> P4Info:
    return P4Info(text_format.Parse(INFO, p4i.P4Info()))


def runtime_file(folder: Path, **sections: object) -> runtime.RuntimeFile:
    path = folder / "s1-runtime.json"
    path.write_text(json.dumps({"target": "bmv2", "p4info": "build/x.p4info", "bmv2_json": "build/x.json", **sections}, indent=1))
    return runtime.read(path)


def encoded(folder: Path, info: P4Info, **entry: object) -> p4r.TableEntry:
    (located,) = runtime.updates(runtime_file(folder, table_entries=[entry]), info)
    return located.update.entity.table_entry


class TestEntries:
    def test_every_kind_of_match(self, tmp_path: Path, info: P4Info) -> None:
        entry = encoded(
            tmp_path,
            info,
            table="In.lpm",
            match={"dst": ["10.0.2.0", 24]},
            action_name="In.send",
            action_params={"mac": "08:00:00:00:02:00", "port": 3},
        )
        assert text_format.MessageToString(entry, as_one_line=True) == (
            'table_id: 10 match { field_id: 1 lpm { value: "\\n\\000\\002\\000" prefix_len: 24 } } action { action { action_id: 1 '
            'params { param_id: 1 value: "\\010\\000\\000\\000\\002\\000" } params { param_id: 2 value: "\\003" } } }'
        )
        entry = encoded(
            tmp_path,
            info,
            table="acl",
            match={"src": ["10.0.0.0", "255.0.0.0"], "ttl": [1, 9], "kind": 17},
            priority=5,
            action_name="drop",
            action_params={},
        )
        src, ttl, kind = entry.match
        assert (src.ternary.value, src.ternary.mask) == (b"\n\0\0\0", b"\xff\0\0\0")
        assert (ttl.range.low, ttl.range.high, kind.optional.value, entry.priority) == (b"\1", b"\t", b"\x11", 5)
        entry = encoded(
            tmp_path,
            info,
            table="exact",
            match={"mac": ["ff:ff:ff:ff:ff:ff"], "v6": "2001:db8::1"},
            action_name="send",
            action_params={"mac": 1, "port": "0x1ff"},
        )
        assert entry.match[0].exact.value == b"\xff" * 6
        assert entry.match[1].exact.value == bytes.fromhex("20010db8000000000000000000000001")
        assert [p.value for p in entry.action.action.params] == [b"\1", b"\1\xff"]

    def test_what_matches_everything_is_left_out(self, tmp_path: Path, info: P4Info) -> None:
        assert not encoded(tmp_path, info, table="lpm", match={"dst": ["0.0.0.0", 0]}, action_name="drop").match
        entry = encoded(tmp_path, info, table="acl", match={"src": [0, 0], "ttl": [0, 255]}, priority=1, action_name="drop")
        assert not entry.match

    def test_negative_numbers_are_twos_complement(self, tmp_path: Path, info: P4Info) -> None:
        entry = encoded(tmp_path, info, table="acl", priority=1, action_name="other", action_params={"number": -1})
        assert entry.action.action.params[0].value == b"\xff"

    def test_default_actions_are_modified(self, tmp_path: Path, info: P4Info) -> None:
        file = runtime_file(
            tmp_path, table_entries=[{"table": "In.lpm", "default_action": True, "action_name": "In.drop", "action_params": {}}]
        )
        (located,) = runtime.updates(file, info)
        assert located.update.type == p4r.Update.MODIFY and located.update.entity.table_entry.is_default_action

    def test_groups_and_sessions(self, tmp_path: Path, info: P4Info) -> None:
        file = runtime_file(
            tmp_path,
            multicast_group_entries=[{"multicast_group_id": 7, "replicas": [{"egress_port": 1, "instance": 2}]}],
            clone_session_entries=[{"clone_session_id": 100, "replicas": [{"egress_port": 510, "instance": 1}], "packet_length_bytes": 64}],
        )
        group, session = (u.update.entity.packet_replication_engine_entry for u in runtime.updates(file, info))
        assert (group.multicast_group_entry.multicast_group_id, group.multicast_group_entry.replicas[0].port) == (7, b"\1")
        assert (session.clone_session_entry.session_id, session.clone_session_entry.packet_length_bytes) == (100, 64)

    @pytest.mark.parametrize(
        ("entry", "key", "message"),
        [
            ({"table": "In.lpn", "action_name": "In.drop"}, "table", "the program has no table 'In.lpn'; did you mean 'In.lpm'?"),
            ({"action_name": "In.drop"}, "table", "missing key 'table'"),
            ({"table": "lpm", "action_name": "dorp"}, "action_name", "the program has no action 'dorp'; did you mean 'drop'?"),
            ({"table": "lpm", "action_name": "other"}, "action_name", "In.other is not an action of In.lpm; it has In.send, In.drop"),
            (
                {"table": "lpm", "action_name": "drop", "match": {"dts": ["1.2.3.4", 32]}},
                "match.dts",
                "In.lpm has no key field of that name; did you mean 'dst'?",
            ),
            (
                {"table": "lpm", "action_name": "drop", "match": {"dst": "1.2.3.4"}},
                "match.dst",
                "expected [value, prefix length], got '1.2.3.4'",
            ),
            (
                {"table": "lpm", "action_name": "drop", "match": {"dst": ["1.2.3.4", 33]}},
                "match.dst[1]",
                "33 is not a prefix length from 0 to 32",
            ),
            (
                {"table": "lpm", "action_name": "drop", "match": {"dst": ["10.0.1.7", 24]}},
                "match.dst",
                "the value has bits beyond its prefix, which switches refuse: write 10.0.1.0",
            ),
            (
                {"table": "lpm", "action_name": "drop", "match": {"dst": ["10.0.1.x", 24]}},
                "match.dst[0]",
                "'10.0.1.x' is neither a number nor an IPv4, IPv6 or Ethernet address",
            ),
            (
                {"table": "lpm", "action_name": "drop", "match": {"dst": ["08:00:00:00:01:00", 24]}},
                "match.dst[0]",
                "'08:00:00:00:01:00' has 48 bits, the field or parameter has 32",
            ),
            (
                {"table": "lpm", "action_name": "drop", "priority": 3},
                "priority",
                "In.lpm has only exact and lpm fields: its entries have no priority",
            ),
            (
                {"table": "acl", "action_name": "drop"},
                "",
                "In.acl has ternary, range or optional fields: each entry needs a priority of 1 or more; the highest wins",
            ),
            (
                {"table": "acl", "action_name": "drop", "priority": 0},
                "priority",
                "In.acl has ternary, range or optional fields: each entry needs a priority of 1 or more; the highest wins",
            ),
            (
                {"table": "acl", "action_name": "drop", "priority": 1, "match": {"ttl": [9, 1]}},
                "match.ttl",
                "the lowest, 9, is above the highest, 1",
            ),
            ({"table": "acl", "action_name": "drop", "priority": 1, "match": {"ttl": [0, 256]}}, "match.ttl[1]", "256 does not fit 8 bits"),
            (
                {"table": "acl", "action_name": "drop", "priority": 1, "match": {"src": [3, 1]}},
                "match.src",
                "the value has bits beyond its mask, which switches refuse: write 1",
            ),
            (
                {"table": "exact", "action_name": "send", "match": {"mac": 1}, "action_params": {"mac": 1, "port": 1}},
                "match",
                "missing key 'v6': exact fields of In.exact cannot be left out",
            ),
            (
                {"table": "lpm", "action_name": "send", "action_params": {"mac": 1}},
                "action_params",
                "missing key 'port', a parameter of In.send",
            ),
            (
                {"table": "lpm", "action_name": "send", "action_params": {"mac": 1, "port": 512}},
                "action_params.port",
                "512 does not fit 9 bits",
            ),
            (
                {"table": "lpm", "action_name": "send", "action_params": {"mac": 1, "prot": 1}},
                "action_params.prot",
                "In.send has no parameter of that name; did you mean 'port'?",
            ),
            (
                {"table": "lpm", "action_name": "drop", "action_params": {"x": 1}},
                "action_params.x",
                "In.drop has no parameter of that name; it takes none",
            ),
            ({"table": "lpm", "action_name": "drop", "priorty": 1}, "priorty", "unknown key; did you mean 'priority'?"),
            (
                {"table": "lpm", "action_name": "drop", "default_action": True, "match": {"dst": [1, 32]}},
                "match",
                "the default action has no match",
            ),
            (
                {"table": "lpm", "action_name": "drop", "match": {"dst": [True, 32]}},
                "match.dst[0]",
                "True is neither a number nor an IPv4, IPv6 or Ethernet address",
            ),
        ],
    )
    def test_errors_name_file_line_and_key(self, tmp_path: Path, info: P4Info, entry: dict, key: str, message: str) -> None:
        file = runtime_file(tmp_path, table_entries=[{"table": "lpm", "action_name": "drop"}, entry])
        with pytest.raises(ConfigError) as caught:
            runtime.updates(file, info)
        place, _, said = str(caught.value).partition(": ")
        name, _, line = place.rpartition(":")
        assert name == str(tmp_path / "s1-runtime.json")
        assert said == f"table_entries[1]{'.' + key if key else ''}: {message}"
        # The line is one of the second entry's, and holds the key where there is one.
        lines = Path(name).read_text().splitlines()
        second = max(i for i, text in enumerate(lines) if text == "  {") + 1
        assert int(line) >= second

    def test_the_line_is_the_key_s_own(self, tmp_path: Path, info: P4Info) -> None:
        file = runtime_file(tmp_path, table_entries=[{"table": "lpm", "action_name": "drop", "match": {"dst": ["1.2.3.4", 99]}}])
        with pytest.raises(ConfigError) as caught:
            runtime.updates(file, info)
        line = int(str(caught.value).split(":")[1])
        assert (tmp_path / "s1-runtime.json").read_text().splitlines()[line - 1].strip() == "99"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"target": "tofino"}, "target: expected \"bmv2\", got 'tofino'"),
            ({"p4info": 3}, "p4info: expected a file's name, got 3"),
            ({"table_entires": []}, "table_entires: unknown key; did you mean 'table_entries'?"),
        ],
    )
    def test_heads(self, tmp_path: Path, change: dict, message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            runtime_file(tmp_path, **change)
        assert str(caught.value).endswith(message)


class TestTopology:
    def test_all_of_it(self) -> None:
        read = topology.read(TOPOLOGY)
        assert [(h.name, str(h.ip), h.mac) for h in read.hosts] == [
            ("h1", "10.0.1.1/24", "08:00:00:00:01:11"),
            ("h2", "10.0.2.2/24", "08:00:00:00:02:22"),
            ("h3", "10.0.3.3/31", "08:00:00:00:03:33"),
        ]
        assert [h.gateway for h in read.hosts] == [
            ("10.0.1.10", "08:00:00:00:01:00"),
            ("10.0.2.20", "08:00:00:00:02:00"),
            ("10.0.3.2", "08:00:00:00:03:00"),
        ]
        assert [(s.name, s.cpu_port) for s in read.switches] == [("s1", None), ("s2", 510)]
        # Numbers are milliseconds; the host comes first wherever the file has it; no bandwidth is no limit.
        assert read.links == (
            topology.Link("h1", 0, "s1", 1, 0.0, None),
            topology.Link("s1", 2, "s2", 2, 0.005, 10e6),
            topology.Link("h2", 0, "s2", 1, 0.001, None),
            topology.Link("h3", 0, "s1", 3, 0.0, None),
        )
        assert list(read.ports("s1")) == [1, 2, 3]
        assert read.notes == ()

    @pytest.mark.parametrize(
        ("latency", "seconds"),
        [("5ms", 0.005), ("0", 0.0), (2, 0.002), (0.5, 0.0005), ("250us", 250e-6), ("1s", 1.0), ("1.5 ms", 0.0015), ("100", 100e-6)],
    )
    def test_latencies(self, tmp_path: Path, latency: object, seconds: float) -> None:
        path = self.changed(tmp_path, lambda t: t["links"][0].append(latency))
        assert topology.read(path).links[0].delay_s == pytest.approx(seconds)

    @staticmethod
    def changed(folder: Path, change: Callable[[dict], object]) -> Path:
        values = json.loads(TOPOLOGY.read_text())
        change(values)
        path = folder / "topology.json"
        path.write_text(json.dumps(values, indent=1))
        return path

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: t.pop("links"), ": missing key 'links': a topology of the P4 tutorials has hosts, switches and links"),
            (lambda t: t["hosts"]["h1"].pop("mac"), "hosts.h1: missing key 'mac'"),
            (lambda t: t["hosts"]["h1"].update(ip="10.0.1"), "hosts.h1.ip: Expected 4 octets in '10.0.1'; as in 10.0.1.1/24"),
            (
                lambda t: t["hosts"]["h1"].update(mac="01:00:5e:00:00:01"),
                "hosts.h1.mac: '01:00:5e:00:00:01' is not the Ethernet address of a host, such as 08:00:00:00:01:11",
            ),
            (
                lambda t: t["hosts"]["h1"]["commands"].append("reboot"),
                "hosts.h1.commands[2]: 'reboot': not run: hosts only take route add/del, arp -s/-d, ip route/neigh/addr/link, ethtool -K, and sysctl -w"
                " net.*. Start programs at the prompt (--cli)",
            ),
            (
                lambda t: t["hosts"].update(h4={"ip": "10.0.4.4/24", "mac": "08:00:00:00:04:44"}),
                "hosts.h4: the host has 0 links; a host has exactly one",
            ),
            (
                lambda t: t["switches"]["s1"].update(cli_input="s1-commands.txt"),
                "switches.s1.cli_input: commands of simple_switch_CLI go to BMv2's Thrift port, which this switch does not have: write them as table_entries"
                " of a runtime_json file (docs/tutorials-files.md shows how)",
            ),
            (lambda t: t["switches"]["s1"].update(cpu_port=512), "switches.s1.cpu_port: expected a number from 1 to 510, got 512"),
            (lambda t: t["links"].append(["s1-p9", "s3-p1"]), "links[4][1]: no host or switch 's3'; known: h1, h2, h3, s1, s2"),
            (lambda t: t["links"].append(["s1-p1", "s2-p9"]), "links[4]: port 1 of s1 is used by links[0] already"),
            (lambda t: t["links"].append(["s1-eth4", "s2-p9"]), "links[4][0]: 's1-eth4': write a switch's port as in s1-p1, from 1 to 509"),
            (lambda t: t["links"].append(["s1-p4", "s1-p5"]), "links[4]: loops back to the same switch, s1"),
            (lambda t: t["links"].append(["h1", "h2"]), "links[4]: links host h1 to host h2: hosts link to switches"),
            (lambda t: t["links"].append(["h1-p1", "s2-p9"]), "links[4][0]: 'h1-p1': hosts have no port numbers: write 'h1'"),
            (
                lambda t: t["links"][1].__setitem__(2, "soon"),
                "links[1][2]: 'soon' is not a latency: write milliseconds, or a string such as \"5ms\"",
            ),
            (lambda t: t["links"][1].__setitem__(3, "10mbit"), "links[1][3]: '10mbit' is not a bandwidth: write Mbit/s, from 0.001"),
            (
                lambda t: t["links"].append(["s1-p4"]),
                'links[4]: as in ["h1", "s1-p1"] or ["s1-p3", "s2-p4", "5ms", 10]: two ends, then latency, then bandwidth in Mbit/s',
            ),
        ],
    )
    def test_errors_name_file_line_and_key(self, tmp_path: Path, change: Callable[[dict], object], message: str) -> None:
        path = self.changed(tmp_path, change)
        with pytest.raises(ConfigError) as caught:
            topology.read(path)
        said = str(caught.value)
        assert said.startswith(f"{path}:") and said.endswith(message)

    def test_unknown_keys_are_said(self, tmp_path: Path) -> None:
        path = self.changed(tmp_path, lambda t: t["hosts"]["h1"].update(comands=[]))
        (note,) = topology.read(path).notes
        assert note.endswith("hosts.h1.comands: this key is ignored; did you mean 'commands'?")


class TestCommands:
    @pytest.mark.parametrize(
        ("text", "argv"),
        [
            ("route add default gw 10.0.1.10 dev eth0", "ip route add default via 10.0.1.10 dev eth0"),
            ("/sbin/route add -net 10.2.0.0/16 gw 10.0.1.10", "ip route add 10.2.0.0/16 via 10.0.1.10"),
            ("route add -net 10.2.0.0 netmask 255.255.0.0 dev eth0", "ip route add 10.2.0.0/16 dev eth0"),
            ("route add -host 10.2.0.1 eth0", "ip route add 10.2.0.1/32 dev eth0"),
            ("route del default", "ip route del default"),
            ("arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00", "ip neigh replace 10.0.1.10 lladdr 08:00:00:00:01:00 nud permanent dev eth0"),
            ("arp -s 10.0.1.10 08:00:00:00:01:00", "ip neigh replace 10.0.1.10 lladdr 08:00:00:00:01:00 nud permanent dev eth0"),
            ("ip route add 10.0.0.0/24 dev eth0", "ip route add 10.0.0.0/24 dev eth0"),
            ("ethtool --offload eth0 tx off", "ethtool -K eth0 tx off"),
            ("sysctl -w net.ipv4.tcp_ecn=1", "sysctl -q -w net.ipv4.tcp_ecn=1"),
        ],
    )
    def test_what_runs(self, text: str, argv: str) -> None:
        assert " ".join(commands.parse(text).argv) == argv

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "rm -rf /",
            "route add default gw 10.0.1.10; reboot",
            "ip netns exec other true",
            "ip link set eth0 netns 1",
            "ip -n other route",
            "ip -batch file",
            "sysctl -w kernel.panic=1",
            "sysctl -w net/../kernel/modprobe=/tmp/x",
            "sysctl -w net.ipv4/../../kernel.panic=1",
            "ip link set dev eth0 xdp object /tmp/x.o section a",
            "ip link set dev eth0 xdpgeneric obj /tmp/x.o",
            "ip route add 10.0.0.0/8 encap bpf in obj /tmp/x.o dev eth0",
            "ip link add link eth0 name x link-netns other type macvlan",
            "sysctl -p",
            "ethtool -s eth0 speed 10",
            "arp -f /etc/shadow",
            "route add default gw nowhere",
            "route add -net 10.2.0.1/16",
            "$(reboot)",
            "ip route add default via `id`",
            "route",
            "arp -i eth0 -s 10.0.1.10 08:00",
            "'",
        ],
    )
    def test_what_does_not(self, text: str) -> None:
        with pytest.raises(ValueError):
            commands.parse(text)

    @given(st.text(max_size=60))
    def test_nothing_else_ever_runs(self, text: str) -> None:
        try:
            argv = commands.parse(text).argv
        except ValueError:
            return
        assert argv[0] in ("ip", "ethtool", "sysctl")


class TestJson:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
        max_leaves=12,
    )

    @given(values=st.dictionaries(st.text(max_size=6), values, max_size=4), indent=st.none() | st.integers(0, 3))
    def test_every_path_has_the_line_of_its_key(self, tmp_path_factory: pytest.TempPathFactory, values: dict, indent: int | None) -> None:
        path = tmp_path_factory.mktemp("json") / "x.json"
        path.write_text(json.dumps(values, indent=indent), encoding="utf-8")
        document = located_json.read(path)
        assert document.values == values
        lines = path.read_text(encoding="utf-8").split("\n")

        def check(here: tuple, value: object) -> None:
            if here:
                _, line = document.places[here]
                if isinstance(here[-1], str):
                    assert json.dumps(here[-1]) in lines[line - 1]
            if isinstance(value, dict):
                for key, inner in value.items():
                    check((*here, key), inner)
            if isinstance(value, list):
                for i, inner in enumerate(value):
                    check((*here, i), inner)

        check((), values)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"a": 1,\n "a": 2}', ":2: a: the key is here twice"),
            ("[]", ":1: expected an object"),
            ('{"a":\n }', ":2: not JSON: Expecting value (column 2)"),
            ("\xff", ""),
        ],
    )
    def test_bad_files(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "x.json"
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(ConfigError, match=str(path)) as caught:
            located_json.read(path)
        assert message in str(caught.value)


class TestPrograms:
    """Where a program is found, and when it is compiled."""

    @pytest.fixture
    def exercise(self, tmp_path: Path) -> Path:
        if probes.program("fairlane-compile") is None:
            pytest.skip("fairlane-compile is not built (make build)")
        return shutil.copytree(EXERCISE, tmp_path / "exercise")

    def find(self, exercise: Path, *given: Path) -> list[programs.SwitchProgram]:
        work = exercise.parent / f"work{len(list(exercise.parent.iterdir()))}"
        work.mkdir()
        return programs.find(topology.read(exercise / "pair" / "topology.json"), given, targets.compiler(), work)

    def test_compiled_once_and_elsewhere(self, exercise: Path) -> None:
        before = sorted(exercise.rglob("*"))
        one, two = self.find(exercise)
        assert one.json == two.json and one.json.is_file() and len(one.updates) == 8 and len(two.updates) == 2
        assert one.origin.endswith("forward.p4 compiled")
        assert sorted(exercise.rglob("*")) == before

    def test_what_is_built_is_used_while_it_is_newer(self, exercise: Path) -> None:
        (first, _) = self.find(exercise)
        (exercise / "build").mkdir()
        shutil.copy(first.json, exercise / "build" / "forward.json")
        shutil.copy(first.p4info, exercise / "build" / "forward.p4.p4info.txtpb")
        (again, _) = self.find(exercise)
        assert again.json == exercise / "build" / "forward.json" and again.origin.endswith("as built")
        source = exercise / "forward.p4"
        source.touch()
        newer = source.stat().st_mtime + 10
        os.utime(source, (newer, newer))
        assert self.find(exercise)[0].origin.endswith("compiled")

    def test_another_source_of_the_same_name(self, exercise: Path) -> None:
        solution = exercise / "solution"
        solution.mkdir()
        shutil.move(exercise / "forward.p4", solution / "forward.p4")
        with pytest.raises(ConfigError, match=r"s1-runtime.json:4: bmv2_json: neither build/forward.json nor forward.p4 is in .*--program"):
            self.find(exercise)
        assert self.find(exercise, solution / "forward.p4")[0].origin.endswith("solution/forward.p4 compiled")
        other = solution / "other.p4"
        other.write_text("")
        with pytest.raises(Refusal, match="no switch of .* runs a program of that name; they run forward"):
            self.find(exercise, solution / "forward.p4", other)

    def test_a_program_that_does_not_compile(self, exercise: Path) -> None:
        (exercise / "forward.p4").write_text("nonsense")
        with pytest.raises(Refusal, match=r"forward.p4 does not compile:\n.*forward.p4:1:"):
            self.find(exercise)

    def test_runtime_files_that_are_absent(self, exercise: Path) -> None:
        (exercise / "pair" / "s1-runtime.json").unlink()
        with pytest.raises(ConfigError, match=r"topology.json:\d+: switches.s1.runtime_json: no file pair/s1-runtime.json in "):
            self.find(exercise)
