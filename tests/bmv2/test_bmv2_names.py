"""BMv2's names on Fairlane's switch: commands and what they print, Python packages, variables, networks of p4-utils."""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc as grpc_package
import pytest
from finsy.proto import p4r

from fairlane import probes
from fairlane.bmv2 import environment, interface, networks, program, words
from fairlane.errors import Refusal
from tests.p4runtime import support

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(probes.program("fairlane-switch") is None, reason="fairlane-switch is not built")


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """A command under the variables of `fairlane env`."""
    env = environment.extended(os.environ)
    return subprocess.run([str(word) for word in command], env=env, text=True, capture_output=True, timeout=60, check=False, **options)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By BMv2's name of the compiler, with the options that p4-utils gives."""
    folder = tmp_path_factory.mktemp("bmv2")
    options = ["--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "-o", folder, "--p4runtime-files", folder / "p4info.txt"]
    done = run("p4c", HERE / "commands.p4", *options)
    assert done.returncode == 0, done.stderr
    return folder / "commands.json"


@contextmanager
def switch(name: str, *arguments: str | Path) -> Iterator[int]:
    """A switch by one of BMv2's names; its Thrift port, once it listens."""
    port = support.free_port()
    command = [name, "--thrift-port", str(port), *map(str, arguments)]
    process = subprocess.Popen(command, env=environment.extended(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, process.communicate()[1]
                time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=10)


def printed(port: int, commands: str) -> str:
    done = run("simple_switch_CLI", "--thrift-port", str(port), input=commands)
    assert done.returncode == 0, done.stderr
    return re.sub(r"Life: \d+ms", "Life: 0ms", done.stdout)


def test_commands_print_what_they_print_with_bmv2(compiled: Path, tmp_path: Path) -> None:
    """The expected text was written by BMv2's own command line and `simple_switch` (version of August 2026)."""
    with switch("simple_switch", "--notifications-addr", f"ipc://{tmp_path}/n.ipc", compiled) as port:
        got = printed(port, (HERE / "commands.txt").read_text(encoding="utf-8"))
    expected = re.sub(r"Life: \d+ms", "Life: 0ms", (HERE / "commands.expected").read_text(encoding="utf-8"))
    assert got == expected


def test_commands_that_bmv2_prints_otherwise_or_dies_of(compiled: Path, tmp_path: Path) -> None:
    """docs/coming-from-p4-utils.md names each."""
    with switch("simple_switch", "--notifications-addr", f"ipc://{tmp_path}/n.ipc", compiled) as port:
        got = printed(
            port, "pvs_add P.pvs 0x1234\npvs_get P.pvs\nset_toeplitz_hash_key calc 00000000\nserialize_state x\nnonsense\nswitch_info\n"
        )
        assert "RuntimeCmd: 1234\n" in got
        assert "Invalid Toeplitz hash operation (WRONG_TYPE_CALCULATION)" in got
        assert "does not write BMv2's state files" in got
        assert "*** Unknown syntax: nonsense" in got
        assert re.search(rf"thrift_port +: {port}\n", got) and re.search(rf"notifications_socket +: ipc://{tmp_path}/n.ipc\n", got)
        lags = "mc_mgrp_create 2\nmc_set_lag_membership 1 3 4\nmc_node_create 2 | 1\nmc_node_associate 2 0\nmc_dump\n"
        assert "-> (ports=[], lags=[1])\n" in printed(port, lags) and "lag(1) -> ports=[3, 4]\n" in printed(port, "mc_dump\n")
        cleared = printed(port, "table_add lpm drop 10.0.1.77/24 =>\ntable_dump lpm\ntable_clear consts\ntable_num_entries consts\n")
        assert "LPM       0a000100/24" in cleared and cleared.endswith("RuntimeCmd: RuntimeCmd: 2\nRuntimeCmd: \n")


def test_nobody_listens() -> None:
    done = run("simple_switch_CLI", "--thrift-port", str(support.free_port()), input="")
    assert done.returncode == 1 and done.stdout.startswith("Could not connect to thrift client on port")


def test_thrift_and_p4runtime_see_one_state(tmp_path: Path) -> None:
    p4 = support.compile_program(support.PROGRAM, tmp_path)
    grpc = f"127.0.0.1:{support.free_port()}"
    options = [
        "--device-id",
        str(support.DEVICE_ID),
        "--notifications-addr",
        f"ipc://{tmp_path}/n.ipc",
        "--no-p4",
        "--",
        "--grpc-server-addr",
        grpc,
    ]
    with switch("simple_switch_grpc", *options) as port, support.Client(grpc, election_id=1) as client:
        client.push(p4.config())
        replicas = [p4r.Replica(egress_port=port, instance=4) for port in (1, 2)]
        entry = p4r.MulticastGroupEntry(multicast_group_id=9, replicas=replicas)
        client.insert(p4r.PacketReplicationEngineEntry(multicast_group_entry=entry))
        assert "mgrp(9)\n  -> (L1h=0, rid=4) -> (ports=[1, 2], lags=[])\n" in printed(port, "mc_dump\n")
        printed(port, "mc_node_create 5 3\nmc_node_associate 9 1\n")
        (read,) = client.read(p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry(multicast_group_id=9)))
        assert [(int.from_bytes(one.port, "big"), one.instance) for one in read.replicas] == [(1, 4), (2, 4), (3, 5)]
        printed(port, "mirroring_add 77 2\n")
        (session,) = client.read(p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry(session_id=77)))
        assert [int.from_bytes(one.port, "big") for one in session.replicas] == [2]


@pytest.mark.parametrize(
    "given",
    [
        ["--nanolog", "ipc://{folder}/log.ipc", "--no-p4"],
        # As the P4 tutorials' run_exercise.py and p4_mininet.py start every switch.
        ["--pcap", "{folder}", "--nanolog", "ipc://{folder}/log.ipc", "{json}", "--log-console"],
    ],
    ids=["no-p4", "tutorials"],
)
def test_entries_are_written_and_read_under_each_option_of_a_switch(given: list[str], tmp_path: Path) -> None:
    p4 = support.compile_program(support.PROGRAM, tmp_path)
    names = support.Names(p4.info())
    grpc = f"127.0.0.1:{support.free_port()}"
    own = ["--device-id", str(support.DEVICE_ID), "--notifications-addr", f"ipc://{tmp_path}/n.ipc"]
    words = [word.format(folder=tmp_path, json=p4.json) for word in given]
    with switch("simple_switch_grpc", *own, *words, "--", "--grpc-server-addr", grpc) as port, support.Client(grpc) as client:
        client.push(p4.config())
        action = p4r.TableAction(action=names.action("l2_forward", 1))
        entries = [p4r.TableEntry(table_id=names["l2"], match=[support.exact(1, address)], action=action) for address in (1, 2)]
        client.insert(*entries)
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == entries
        client.delete(entries[0])
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == entries[1:]
        assert "Dumping entry 0x1" in printed(port, "table_dump l2\n")


def test_signed_action_data_keeps_its_sign_by_thrift_and_by_p4runtime(tmp_path: Path) -> None:
    p4 = support.compile_program(HERE / "signed.p4", tmp_path)
    names = support.Names(p4.info())
    grpc = f"127.0.0.1:{support.free_port()}"
    options = ["--device-id", str(support.DEVICE_ID), "--notifications-addr", f"ipc://{tmp_path}/n.ipc", "--no-p4"]
    options += ["--", "--grpc-server-addr", grpc, "--cpu-port", str(support.CPU_PORT)]
    with switch("simple_switch_grpc", *options) as port, support.Client(grpc, election_id=1) as client:
        client.push(p4.config())
        # -2 and -32, 15 and 0x7ff0, -16 and -32768, 1 and -1.
        entry = p4r.TableEntry(table_id=names["direct"], match=[support.exact(1, 1)])
        entry.action.action.CopyFrom(names.action("take", 0x1E, 0xFFE0))
        client.insert(entry)
        member = p4r.ActionProfileMember(action_profile_id=names["given"], member_id=7, action=names.action("take", 0x0F, 0x7FF0))
        client.insert(member)
        through = p4r.TableEntry(table_id=names["members"], match=[support.exact(1, 16)])
        through.action.action_profile_member_id = 7
        client.insert(through)
        said = printed(port, "table_add direct take 2 => 0x10 0x8000\nact_prof_create_member given take 1 0xffff\n")
        handle = re.search(r"Member has been created with handle (\d+)", said)
        assert handle, said
        said = printed(port, f"table_indirect_add members 17 => {handle[1]}\n")
        assert "Entry has been added" in said, said
        (read,) = client.read(p4r.TableEntry(table_id=names["direct"], match=[support.exact(1, 1)]))
        assert [param.value for param in read.action.action.params] == [b"\x1e", b"\xff\xe0"]
        for kind, a, b, below in (
            (1, 0xFFFE, 0xFFFE, 0),
            (2, 0xFFF0, 0xF800, 0),
            (3, 0xFFFD, 0xFFFC, 0),
            (16, 0x000F, 0x07FF, 1),
            (17, 0x0001, 0xFFFF, 0),
        ):
            client.stream.send(packet=p4r.PacketOut(payload=struct.pack("!BHHB", kind, 0, 0, 0)))
            assert client.stream.receive("packet").payload == struct.pack("!BHHB", kind, a, b, below), kind
        printed(port, "table_set_default direct take 0x1f 0\n")
        client.stream.send(packet=p4r.PacketOut(payload=bytes([3, 0, 0, 0, 0, 0])))
        assert client.stream.receive("packet").payload == bytes.fromhex("03ffff000001")


def test_a_program_of_the_command_line_has_no_p4info(compiled: Path, tmp_path: Path) -> None:
    """p4-utils pushes its config when the switch refuses to give one."""
    grpc = f"127.0.0.1:{support.free_port()}"
    device = ["--device-id", str(support.DEVICE_ID), "--notifications-addr", f"ipc://{tmp_path}/n.ipc"]
    with switch("simple_switch_grpc", *device, compiled, "--", "--grpc-server-addr", grpc), support.Client(grpc, election_id=1) as client:
        with pytest.raises(grpc_package.RpcError) as refused:
            client.config()
        assert refused.value.code() == grpc_package.StatusCode.FAILED_PRECONDITION


def test_notifications_reach_a_subscriber_of_nanomsg(compiled: Path, tmp_path: Path) -> None:
    """A swap is said at once. The bytes before it are those of nanomsg's SP protocol over IPC."""
    options = ["--device-id", "5", "--notifications-addr", f"ipc://{tmp_path}/n.ipc", compiled, "--", "--enable-swap"]
    with switch("simple_switch", *options) as port, socket.socket(socket.AF_UNIX) as subscriber:
        subscriber.settimeout(10)
        subscriber.connect(f"{tmp_path}/n.ipc")
        subscriber.sendall(b"\0SP\0\0\x21\0\0")
        assert subscriber.recv(8) == b"\0SP\0\0\x20\0\0"
        time.sleep(0.2)
        assert "Invalid" not in printed(port, f"load_new_config_file {compiled}\nswap_configs\n")
        for status in (0, 1, 2):
            frame = subscriber.recv(41, socket.MSG_WAITALL)
            assert frame[:13] == b"\x01" + struct.pack("!Q", 32) + b"SWP|"
            assert struct.unpack("<Qii", frame[13:29]) == (5, 0, status)


def test_packages_are_found_by_bmv2s_names(compiled: Path, tmp_path: Path) -> None:
    """As p4-utils and controllers of courses import and use them."""
    script = tmp_path / "controller.py"
    script.write_text(
        "import sys\n"
        "import bmpy_utils, runtime_CLI, sswitch_CLI\n"
        "from bm_runtime.standard import Standard\n"
        "from bm_runtime.standard.ttypes import *\n"
        "from bm_runtime.simple_pre import SimplePre\n"
        "from bm_runtime.simple_pre_lag import SimplePreLAG\n"
        "from sswitch_runtime import SimpleSwitch\n"
        "from sswitch_runtime.ttypes import *\n"
        "from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc\n"
        "from p4.config.v1 import p4info_pb2\n"
        "from p4.tmp import p4config_pb2\n"
        "from google.rpc import status_pb2, code_pb2\n"
        "services = [('standard', Standard.Client), ('simple_pre', SimplePre.Client), ('simple_switch', SimpleSwitch.Client)]\n"
        "standard, pre, switch = bmpy_utils.thrift_connect('localhost', int(sys.argv[1]), services)\n"
        "key = [BmMatchParam(type=BmMatchParamType.LPM, lpm=BmMatchParamLPM(b'\\x0a\\0\\0\\0', 8))]\n"
        "handle = standard.bm_mt_add_entry(0, 'I.lpm', key, 'I.drop', [], BmAddEntryOptions(priority=0))\n"
        "try:\n"
        "    standard.bm_mt_add_entry(0, 'I.lpm', key, 'I.drop', [], BmAddEntryOptions(priority=0))\n"
        "except InvalidTableOperation as refused:\n"
        "    print(handle, TableOperationErrorCode._VALUES_TO_NAMES[refused.code])\n"
        "print([spec[2] for spec in standard.bm_mgmt_get_info().thrift_spec[1:]])\n"
        "switch.mirroring_session_add(3, MirroringSessionConfig(port=1))\n"
        "config = p4config_pb2.P4DeviceConfig()\n"
        "config.reassign, config.device_data = True, b'{}'\n"
        "print(config.SerializeToString())\n",
        encoding="utf-8",
    )
    with switch("simple_switch", "--notifications-addr", f"ipc://{tmp_path}/n.ipc", compiled) as port:
        done = run(sys.executable, script, str(port))
    assert done.returncode == 0, done.stderr
    fields = ["device_id", "thrift_port", "notifications_socket", "elogger_socket", "debugger_socket"]
    assert done.stdout == f"0 DUPLICATE_ENTRY\n{fields}\nb'\\x08\\x01\\x1a\\x02{{}}'\n"


def test_env_prints_lines_for_a_shell(tmp_path: Path) -> None:
    real = tmp_path / "simple_switch"
    real.write_text("#!/bin/sh\n", encoding="utf-8")
    real.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    env.pop("PYTHONPATH", None)
    done = subprocess.run([sys.executable, "-m", "fairlane", "env"], env=env, text=True, capture_output=True, check=True, timeout=60)
    assert f"note: {real} is hidden by these lines" in done.stderr
    shell = subprocess.run(
        ["bash", "-c", f"{done.stdout}\ncommand -v simple_switch; echo $PYTHONPATH"], env=env, text=True, capture_output=True, check=True
    )
    found, path = shell.stdout.splitlines()
    assert Path(found) == environment.COMMANDS / "simple_switch" and path == ""
    assert environment.lines(env, packages_too=True)[-1].startswith(f"export PYTHONPATH={environment.PACKAGES}")


def test_names_are_linked_for_sudo_and_removed_again(compiled: Path, tmp_path: Path) -> None:
    fairlane = [sys.executable, "-m", "fairlane", "env"]
    linked = subprocess.run([*fairlane, "--link", str(tmp_path)], text=True, capture_output=True, check=True)
    assert {path.name for path in tmp_path.iterdir()} == set(environment.NAMES) and "--unlink" in linked.stdout
    version = subprocess.run([tmp_path / "simple_switch", "--version"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False)
    assert version.returncode == 0
    # Twice is well; a program of somebody else's stays, and so do all others.
    subprocess.run([*fairlane, "--link", str(tmp_path)], capture_output=True, check=True)
    (tmp_path / "p4c").write_text("#!/bin/sh\n# somebody's\n")
    refused = subprocess.run([*fairlane, "--link", str(tmp_path)], text=True, capture_output=True, check=False)
    assert refused.returncode == 2 and f"{tmp_path}/p4c: another program of that name is there" in refused.stderr
    subprocess.run([*fairlane, "--unlink", str(tmp_path)], capture_output=True, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["p4c"]


def test_a_program_outside_of_its_variables_says_what_is_missing() -> None:
    env = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([environment.COMMANDS / "p4c", "x.p4"], env=env, text=True, capture_output=True, check=False)
    assert done.returncode == 127
    assert done.stderr == "p4c: fairlane-compile is not in PATH: run 'fairlane env', and set what it prints\n"


def test_networks_of_p4_utils_are_told_from_others(tmp_path: Path) -> None:
    app, topology, own = tmp_path / "p4app.json", tmp_path / "topology.json", tmp_path / "own.py"
    app.write_text(
        '{"p4_src": "x.p4", "topology": {"assignment_strategy": "l2", "links": [["h1", "s1"]], "hosts": {"h1": {}}}}', encoding="utf-8"
    )
    topology.write_text('{"hosts": {}, "switches": {}, "links": []}', encoding="utf-8")
    own.write_text("print(1)\n", encoding="utf-8")
    assert networks.is_network(app) and networks.is_network(tmp_path / "network.py") and not networks.is_network(topology)
    for path, message in ((tmp_path / "network.py", "there is no such file"), (own, "it does not use p4utils")):
        with pytest.raises(Refusal, match=message):
            networks.run(path)


@pytest.mark.parametrize(
    ("word", "bits", "data"),
    [
        ("10.0.0.1", 32, "0a000001"),
        ("0xffff", 16, "ffff"),
        ("511", 9, "01ff"),
        ("00:00:00:00:01:0a", 48, "00000000010a"),
        ("::1", 128, "00" * 15 + "01"),
        ("0", 1, "00"),
    ],
)
def test_words_become_bytes(word: str, bits: int, data: str) -> None:
    assert words.value(word, bits).hex() == data


@pytest.mark.parametrize(
    ("word", "bits", "message"),
    [
        ("256", 8, "too large"),
        ("-1", 8, "negative"),
        ("1.2.3", 32, "IPv4"),
        ("1:2", 48, "MAC"),
        (":::", 128, "IPv6"),
        ("x", 8, "cast to integer"),
    ],
)
def test_words_that_are_no_values(word: str, bits: int, message: str) -> None:
    with pytest.raises(words.CommandError, match=message):
        words.value(word, bits)


def test_names_may_be_shortened_where_that_is_clear() -> None:
    names: program.Named[int] = program.Named({"A.x.t": 1, "B.x.t": 2, "A.u": 3})
    assert [names.find(name) for name in ("A.x.t", "x.t", "t", "u", "A", "")] == [1, None, None, 3, None, None]


def test_every_service_has_as_many_methods_as_bmv2s() -> None:
    counts = {name: len(getattr(interface.module(name), kind).thrift_services) for name, kind in interface.SERVICES.items()}
    assert counts == {"standard": 70, "simple_pre": 8, "simple_pre_lag": 9, "simple_switch": 14}
