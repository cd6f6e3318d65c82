"""One network over ranks of MPI: the same bytes as by one process, one sentence where a rank ends, and nothing left behind."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.errors import BAD_INPUT, RUN_FAILED
from fairlane.fabrics import machines, virtual_fabric

# More ranks than cores, as root: Open MPI asks for both.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(probes.ROOT),
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
NETWORK = ("leaf-spine", "--flow", "tcp-cubic:8", "--switches", "4", "--rtt", "4ms", "--duration", "0.3")
CONTROLLED = ("chain", "--flow", "als:2", "--flow", "rcp:1", "--flow", "tcp-reno:1", "--switches", "4", "--queue", "red", "--duration", "2")
LIMIT_S = 250
"""Each run takes a few seconds of processor, and many tests may go at once."""
pytestmark = pytest.mark.timeout(2 * LIMIT_S)
LONG = ("dumbbell", "--flow", "rap:4", "--flow", "tcp-sack:4", "--duration", "3000")


@functools.cache
def obstacle() -> str:
    """Why ranks do not run here; "" where they do."""
    if virtual_fabric.native is None:
        return "the module fairlane.native is not built: make build"
    if sys.platform != "linux":
        return "ranks of MPI need Linux"
    if probes.program("mpiexec") is None:
        return "no mpiexec here: apt install openmpi-bin"
    script = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_size())"
    command = ["mpiexec", "-n", "2", sys.executable, "-c", script]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT_S)
    return "" if done.stdout.split() == ["2", "2"] else "mpi4py and this mpiexec do not go together, or one of them is missing"


def started(folder: Path, ranks: int, *arguments: str) -> subprocess.Popen[str]:
    """`fairlane run` in ranks; 0: without mpiexec."""
    before, after = (["mpiexec", "-n", str(ranks)], ["--mpi"]) if ranks else ([], [])
    return subprocess.Popen(
        [*before, sys.executable, "-m", "fairlane", "run", *arguments, *after],
        cwd=folder,
        env=ENVIRONMENT | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(folder: Path, ranks: int, *arguments: str) -> tuple[int, str, str]:
    process = started(folder, ranks, *arguments)
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, out, err


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "made.json"
    }


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("fairlane-rank-")]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where ranks run. With a short name: sockets of Open MPI stand in it."""
    if why := obstacle():
        pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="fr", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.mark.parametrize("network", [NETWORK, CONTROLLED], ids=["fabric", "control plane"])
def test_ranks_leave_the_same_bytes_as_one_process(folder: Path, network: tuple[str, ...]) -> None:
    code, _, err = run(folder, 0, *network, "--cores", "1", "--out", "one", "--pcap", "one-pcap")
    assert code == 0, err
    code, out, err = run(folder, 4, *network, "--out", "four", "--pcap", "four-pcap")
    assert code == 0, err
    assert out.count("4 ranks: ") == 1, out
    assert out.count("results: ") == 1, out
    for one, four in (("one", "four"), ("one-pcap", "four-pcap")):
        alone, several = files(folder / one), files(folder / four)
        assert list(several) == list(alone)
        assert [name for name in alone if alone[name] != several[name]] == []
    assert leftovers(folder) == []


@pytest.mark.parametrize(
    ("ranks", "arguments", "sentence"),
    [
        (3, ("dumbbell", "--flow", "tcp-sack:1"), "--mpi: 3 ranks are too many: this network has 2 parts at most: mpiexec -n 2."),
        (2, ("dumbbell", "--flow", "tcp-sack:1", "--trace", "t.csv"), "--trace: not with --mpi."),
        (2, ("dumbbell", "--flow", "tcp-sack:1", "--cores", "2"), "--cores: not with --mpi. The number of ranks is that of mpiexec -n."),
        (2, ("no-such.toml",), "no-such"),
    ],
)
def test_a_refusal_is_said_once(folder: Path, ranks: int, arguments: tuple[str, ...], sentence: str) -> None:
    code, _, err = run(folder, ranks, *arguments, "--duration", "0.1", "--out", "out")
    assert code == BAD_INPUT, err
    assert " ".join(err.split()).count(sentence) == 1, err
    assert err.count("fairlane: ") == 1, err
    assert "Traceback" not in err
    assert leftovers(folder) == []


def children(pid: int) -> list[int]:
    try:
        found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return found + [further for child in found for further in children(child)]


def under_way(process: subprocess.Popen[str], folder: Path, count: int) -> list[int]:
    """The ranks themselves: each is the only child of a process of its own, and all have come so far that the first writes records."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        found = [pid for pid in children(process.pid) if b"--mpi" in _read(f"/proc/{pid}/cmdline")]
        ranks = [pid for pid in found if os.getsid(pid) == pid]
        if len(ranks) == count and list(folder.rglob("raw/s1.csv")):
            time.sleep(0.5)
            return ranks
        time.sleep(0.2)
    pytest.fail(f"never {count} ranks: {process.poll()}")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("which", [0, 1])
def test_a_rank_that_dies_ends_all_with_one_sentence(folder: Path, which: int) -> None:
    process = started(folder, 2, *LONG, "--out", "out")
    ranks = under_way(process, folder, 2)
    everybody = children(process.pid)
    numbers = {
        int(dict(entry.partition(b"=")[::2] for entry in _read(f"/proc/{pid}/environ").split(b"\0"))[b"OMPI_COMM_WORLD_RANK"]): pid
        for pid in ranks
    }
    os.kill(numbers[which], signal.SIGKILL)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == RUN_FAILED, err
    assert f"The process {numbers[which]} of rank {which} on " in err, err
    assert err.count("fairlane: ") == 1, err
    assert "was ended by SIGKILL: the run ended with it." in err
    assert gone(everybody)
    assert leftovers(folder) == []
    assert not (folder / "out").exists()


def test_an_interrupt_leaves_nothing_behind(folder: Path) -> None:
    process = started(folder, 2, *LONG, "--out", "out")
    under_way(process, folder, 2)
    everybody = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    assert "Traceback" not in err
    assert gone(everybody)
    assert [path.name for path in folder.iterdir()] == []


def test_pieces_have_all_bytes_in_their_order(tmp_path: Path) -> None:
    contents = {"a": b"", "b": bytes(range(256)) * 40, "c": b"x", "d": b"y" * 1000}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    pieces = list(machines.pieces({"raw": [tmp_path / name for name in contents]}, 1000))
    assert all(sum(len(content) for *_, content in piece) <= 1000 for piece in pieces)
    found: dict[str, bytes] = {}
    for piece in pieces:
        for folder, name, content in piece:
            assert folder == "raw"
            found[name] = found.get(name, b"") + content
    assert found == contents
