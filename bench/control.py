"""The control plane's cost, through real gRPC: a million inserts and their memory; and whether reads and pushes stop traffic.

    python bench/control.py [--inserts 1000000] [--one-by-one 20000] [--batch 1000] [--seconds 10] [--rounds 3] [--json FILE]

Inserts go into an exact table of 32-bit keys in Writes of `--batch` updates, a few Writes under way at a time, as controllers do; and one
by one, each after the answer to the one before. The requests are serialised beforehand, so that what is measured is the switch and
gRPC, not Python's protobuf. Where simple_switch_grpc is installed, it gets a twentieth of them.

The gaps: frames at an even rate go through the switch (as root, in namespaces), stamped by the generator; the receiver tells the longest
way of any of them, that of the slowest in a thousand, and the longest time without a frame. Meanwhile a client does nothing, or reads a
register of 65,536 cells in a loop, or reads a digest list, a register and the counters each second as a controller does, or pushes
pipelines in a loop. What counts is the difference to nothing: the machine itself delays frames.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

sys.path.insert(0, str(Path(__file__).resolve().parent))

from forward import cpu_s, machine, report, show, stop
from veths import SWITCH_PORTS, CannotRun, Network, missing, network, program

HERE = Path(__file__).resolve().parent
ALS = HERE.parent / "p4src" / "als.p4"
UNDER_WAY = 4
RATE_PER_S, SIZE = 5000, 100
GAP_GOAL_MS = 5.0
GAP_ADDRESS = "127.0.0.1:9559"
_OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]


class Pipeline:
    """A compiled program: P4Info and BMv2 JSON."""

    def __init__(self, json_file: Path, info: Path) -> None:
        self.json = json_file
        self.info = text_format.Parse(info.read_text(), p4i.P4Info())

    @staticmethod
    def compiled(source: Path, folder: Path) -> Pipeline:
        """What `compile` left in a folder."""
        return Pipeline(folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb")

    @staticmethod
    def compile(source: Path, folder: Path) -> Pipeline:
        compiler = program("fairlane-compile") or program("p4c-bm2-ss")
        if compiler is None:
            raise CannotRun("no P4 compiler: neither fairlane-compile (make build) nor p4c-bm2-ss")
        outputs = ["-o", str(folder / f"{source.stem}.json"), "--p4runtime-files", str(folder / f"{source.stem}.p4info.txtpb")]
        done = subprocess.run([compiler, *outputs, str(source)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotRun(f"{compiler} does not compile {source}:\n{done.stderr.strip()}")
        return Pipeline.compiled(source, folder)

    def id(self, kind: str, name: str) -> int:
        return next(item.preamble.id for item in getattr(self.info, kind) if item.preamble.name.split(".")[-1] == name)


class Session:
    """The primary client of a switch, unless another has a higher election id."""

    def __init__(self, address: str, election: int = 1) -> None:
        self.channel = grpc.insecure_channel(address, options=_OPTIONS)
        grpc.channel_ready_future(self.channel).result(30)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.election = p4r.Uint128(low=election)
        self._outgoing: queue.SimpleQueue = queue.SimpleQueue()
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = 0
        request.arbitration.election_id.CopyFrom(self.election)
        self._outgoing.put(request)
        self._answers = self.stub.StreamChannel(iter(self._outgoing.get, None))
        next(self._answers)
        # Later messages (digests) are read and discarded.
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        with contextlib.suppress(grpc.RpcError, ValueError):
            for _ in self._answers:
                pass

    def push(self, pipeline: Pipeline, action: int = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(device_id=0, election_id=self.election, action=action)
        request.config.p4info.CopyFrom(pipeline.info)
        request.config.p4_device_config = pipeline.json.read_bytes()
        self.stub.SetForwardingPipelineConfig(request)

    def read(self, *entities: p4r.Entity) -> int:
        """How many entities come back."""
        return sum(len(part.entities) for part in self.stub.Read(p4r.ReadRequest(device_id=0, entities=entities)))

    def close(self) -> None:
        self._outgoing.put(None)
        self.channel.close()


def insert_requests(pipeline: Pipeline, election: p4r.Uint128, first: int, count: int, batch: int) -> Iterator[bytes]:
    table, action = pipeline.id("tables", "hosts"), pipeline.id("actions", "mark")
    for start in range(first, first + count, batch):
        request = p4r.WriteRequest(device_id=0, election_id=election)
        for number in range(start, min(start + batch, first + count)):
            update = request.updates.add(type=p4r.Update.INSERT)
            entry = update.entity.table_entry
            entry.table_id = table
            match = entry.match.add(field_id=1)
            # Spread over the addresses, each once.
            match.exact.value = _canonical(number * 2654435761 % 2**32)
            entry.action.action.action_id = action
            entry.action.action.params.add(param_id=1, value=_canonical(number % 65536))
        yield request.SerializeToString()


def _canonical(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def inserts(name: str, command: list[str], pipeline: Pipeline, count: int, batch: int, one_by_one: int, address: str, folder: Path) -> dict:
    """Rates, CPU time of the switch, and memory."""
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        session = Session(address)
        session.push(pipeline)
        write = session.channel.unary_unary("/p4.v1.P4Runtime/Write")
        single = list(insert_requests(pipeline, session.election, 0, one_by_one, 1))
        start = time.monotonic()
        for request in single:
            write(request)
        single_s = time.monotonic() - start
        before, cpu, wall, sent = rss_bytes(process.pid), 0.0, 0.0, 0
        # In pieces, so that the requests do not fill the memory of this process.
        while sent < count:
            piece = min(count - sent, 100_000)
            requests = list(insert_requests(pipeline, session.election, one_by_one + sent, piece, batch))
            cpu_before, start = cpu_s(process.pid), time.monotonic()
            pending: deque = deque()
            for request in requests:
                pending.append(write.future(request))
                if len(pending) >= UNDER_WAY:
                    pending.popleft().result()
            for call in pending:
                call.result()
            wall, cpu, sent = wall + time.monotonic() - start, cpu + cpu_s(process.pid) - cpu_before, sent + piece
            show(f"{name}: {sent:,} inserts, {sent / wall:,.0f}/s")
        memory = (rss_bytes(process.pid) - before) / count
        session.close()
    except grpc.RpcError as error:
        raise CannotRun(f"{name}: {error.code().name}: {error.details()}") from error
    except grpc.FutureTimeoutError:
        raise CannotRun(f"{name} serves no P4Runtime:\n{(folder / f'{name}.log').read_text(errors='replace')[-1000:]}") from None
    finally:
        stop(process)
    return {
        "inserts": count,
        "batch": batch,
        "per_s": count / wall,
        "cpu_us": cpu / count * 1e6,
        "bytes_per_entry": memory,
        "one_by_one": one_by_one,
        "one_by_one_per_s": one_by_one / single_s,
    }


# A client's work while frames go through the switch; each returns how often it did it.

Busy = Callable[[Session, Pipeline, Pipeline, threading.Event], int]


def nothing(_session: Session, _own: Pipeline, _als: Pipeline, stopped: threading.Event) -> int:
    stopped.wait()
    return 0


def read_register(session: Session, own: Pipeline, _als: Pipeline, stopped: threading.Event) -> int:
    wanted = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=own.id("registers", "seen")))
    done = 0
    while not stopped.is_set():
        if session.read(wanted) != 65_536:
            raise CannotRun("a read of the register did not give all its cells")
        done += 1
    return done


def read_each_second(session: Session, own: Pipeline, _als: Pipeline, stopped: threading.Event) -> int:
    register = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=own.id("registers", "seen")))
    counter = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=own.id("counters", "received")))
    done = 0
    while not stopped.wait(1.0):
        session.read(counter, register)
        done += 1
    return done


def push(session: Session, own: Pipeline, als: Pipeline, stopped: threading.Event) -> int:
    """A large program is checked, and the one that forwards is realized again."""
    done = 0
    while not stopped.is_set():
        session.push(als, p4r.SetForwardingPipelineConfigRequest.VERIFY)
        session.push(own)
        done += 1
    return done


BUSY: dict[str, Busy] = {
    "nothing": nothing,
    "reads 65,536 cells in a loop": read_register,
    "reads each second": read_each_second,
    "pushes pipelines in a loop": push,
}


def client(title: str, folder: Path) -> int:
    """The client process, in the switch's namespace: reports when it is ready, works until its input ends, and reports how often."""
    session = Session(GAP_ADDRESS)
    own, als = Pipeline.compiled(HERE / "control.p4", folder), Pipeline.compiled(ALS, folder)
    session.push(own)
    print("ready", flush=True)
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    print(json.dumps({"done": BUSY[title](session, own, als, stopped)}))
    session.close()
    return 0


def gaps(net: Network, title: str, seconds: float, folder: Path) -> dict:
    """Frames at an even rate through the switch while a client is busy."""
    ports = [word for number, name in SWITCH_PORTS.items() for word in ("-i", f"{number}@{name}")]
    command = [
        program("fairlane-switch") or "fairlane-switch",
        *ports,
        str(folder / "control.json"),
        "--",
        "--grpc-server-addr",
        GAP_ADDRESS,
    ]
    blast, pipes = program("fairlane-blast") or "fairlane-blast", {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running: list[subprocess.Popen] = []
    try:
        with (folder / "log").open("wb") as log:
            running.append(subprocess.Popen(net.command("s1", command), stdout=log, stderr=log))
        busy = subprocess.Popen(
            net.command("s1", [sys.executable, __file__, "--client", title, "--folder", str(folder)]), stdin=subprocess.PIPE, **pipes
        )
        running.append(busy)
        if busy.stdout.readline().strip() != "ready":
            raise CannotRun(f"the client does not reach the switch: {busy.communicate()[1][-1000:]}")
        count = subprocess.Popen(net.command("h2", [blast, "count", "eth0", "--seconds", f"{seconds + 10:g}"]), **pipes)
        running.append(count)
        count.stderr.readline()
        send = [blast, "send", "eth0", "--size", str(SIZE), "--seconds", f"{seconds:g}", "--rate", str(RATE_PER_S)]
        sent = json.loads(subprocess.run(net.command("h1", send), capture_output=True, text=True, check=True, timeout=seconds + 30).stdout)
        done, trouble = busy.communicate(timeout=60)
        if busy.returncode != 0:
            raise CannotRun(f"the client failed: {trouble[-1000:]}")
        received = json.loads(count.communicate(timeout=60)[0])
    except subprocess.SubprocessError as error:
        raise CannotRun(f"the measurement of gaps failed: {error}") from error
    finally:
        for process in reversed(running):
            stop(process)
    return {
        "sent": sent["sent"],
        "received": received["frames"],
        "done": json.loads(done)["done"],
        **{key: received[key] for key in ("longest_way_ms", "slowest_in_1000_ms", "median_way_ms", "longest_gap_ms")},
    }


def run(count: int, batch: int, one_by_one: int, seconds: float, rounds: int) -> dict:
    result: dict = {"machine": machine(), "absent": {}, "inserts": {}, "gaps": {}, "rounds": rounds, "seconds": seconds}
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as name:
        folder = Path(name)
        own = Pipeline.compile(HERE / "control.p4", folder)
        Pipeline.compile(ALS, folder)
        contenders = {"fairlane-switch": count, "simple_switch_grpc": count // 20}
        for number, (switch, wanted) in enumerate(contenders.items()):
            path = program(switch)
            if path is None:
                if switch.startswith("fairlane"):
                    raise CannotRun(f"{switch} is not built: run `make build`")
                result["absent"][switch] = f"{switch} is not installed here"
                continue
            address = f"127.0.0.1:{19559 + number}"
            thrift = ["--thrift-port", str(29090 + number)] if number else []
            command = [path, "--no-p4", *thrift, "--", "--grpc-server-addr", address]
            result["inserts"][switch] = inserts(switch, command, own, wanted, batch, min(one_by_one, wanted), address, folder)
        reason = missing()
        if reason:
            result["absent"]["gaps"] = f"gaps in traffic: {reason}"
            return result
        with network() as net:
            net.ip("s1", "link", "set", "lo", "up")
            for turn in range(rounds):
                for title in BUSY:
                    sample = gaps(net, title, seconds, folder)
                    result["gaps"].setdefault(title, []).append(sample)
                    show(
                        f"round {turn + 1} of {rounds}, client {title} ({sample['done']} times): longest way {sample['longest_way_ms']:.2f} ms,"
                        f" slowest in 1000 {sample['slowest_in_1000_ms']:.2f} ms, longest gap {sample['longest_gap_ms']:.2f} ms"
                    )
    return result


def _median(samples: list[dict], key: str) -> float:
    return statistics.median(sample[key] for sample in samples)


def table(result: dict) -> str:
    about = result["machine"]
    lines = [
        f"P4Runtime over gRPC; {about['model']}, load {about['load']:.1f}",
        "",
        f"{'inserts':20}{'number':>11}{'per second':>12}{'CPU us':>8}{'bytes/entry':>13}{'one by one/s':>14}",
    ]
    for name, sample in result["inserts"].items():
        lines.append(
            f"{name:20}{sample['inserts']:>11,}{sample['per_s']:>12,.0f}{sample['cpu_us']:>8.1f}{sample['bytes_per_entry']:>13,.0f}"
            f"{sample['one_by_one_per_s']:>14,.0f}"
        )
    if result["gaps"]:
        lines += [
            "",
            f"{RATE_PER_S} frames/s of {SIZE} B, {result['seconds']:g} s, medians of {result['rounds']}, milliseconds",
            "",
            f"{'while a client':32}{'times':>8}{'median way':>12}{'1 in 1000':>11}{'longest way':>13}{'longest gap':>13}{'lost':>7}",
        ]
        for title, samples in result["gaps"].items():
            lost = sum(sample["sent"] - sample["received"] for sample in samples)
            ways = "".join(
                f"{_median(samples, key):>{width}.2f}"
                for key, width in (("median_way_ms", 12), ("slowest_in_1000_ms", 11), ("longest_way_ms", 13), ("longest_gap_ms", 13))
            )
            lines.append(f"{title:32}{_median(samples, 'done'):>8.0f}{ways}{lost:>7}")
    lines += [f"not measured: {reason}" for reason in result["absent"].values()]
    return "\n".join(lines)


def verdicts(result: dict) -> list[tuple[bool, str]]:
    """The goals, and whether this run meets them."""
    judged = []
    if result["gaps"]:
        base = _median(result["gaps"]["nothing"], "slowest_in_1000_ms")
        for title in list(result["gaps"])[1:]:
            more = _median(result["gaps"][title], "slowest_in_1000_ms") - base
            judged.append(
                (more < GAP_GOAL_MS, f"a client that {title}: one frame in 1000 waits {more:.2f} ms longer (goal {GAP_GOAL_MS:g})")
            )
    return judged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inserts", type=int, default=1_000_000, help="entries written in batches (default: 1000000)")
    parser.add_argument("--batch", type=int, default=1000, help="updates in one Write (default: 1000)")
    parser.add_argument("--one-by-one", type=int, default=20_000, help="entries written one by one (default: 20000)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each measurement of gaps lasts (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of gaps; medians count (default: 3)")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="also write every measurement to this file")
    arguments = parser.parse_args()
    if arguments.client:
        return client(arguments.client, arguments.folder)
    if (
        min(arguments.inserts, arguments.batch, arguments.one_by_one, arguments.rounds) < 1
        or arguments.inserts + arguments.one_by_one > 2_000_000
    ):
        parser.error("numbers are at least 1, and all inserts together at most 2000000, the size of the table")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return report(
        lambda: run(arguments.inserts, arguments.batch, arguments.one_by_one, arguments.seconds, arguments.rounds),
        table,
        verdicts,
        arguments.json,
    )


if __name__ == "__main__":
    sys.exit(main())
