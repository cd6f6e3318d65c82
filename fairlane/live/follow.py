"""A run on Mininet on the page: reads its records while they grow. Viewers cannot pause or change it, because it runs in real time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Experiment
from fairlane.fabrics.flows import Timing, record_roles
from fairlane.fabrics.places import MININET
from fairlane.fabrics.progress import Progress, Snapshot
from fairlane.fabrics.raw import CsvTail, JsonTail
from fairlane.live.finished import port_values
from fairlane.live.sampler import Sampler, counted
from fairlane.live.server import Server
from fairlane.live.session import Pace, Session
from fairlane.live.view import Options, linger
from fairlane.results.fidelity import Fidelity, doubt
from fairlane.topologies.model import ETHERNET_BYTES

NOTE = (
    "This run goes on in real time, on Mininet: it cannot be paused, stepped or changed here, and the page is one second behind. RED's "
    "average is estimated from the recorded queue, TCP's goodput is what the switch sends to its receiver."
)
# Records come within so long of what they tell; hosts write each second.
_BEHIND_S = 1.5
# As the embedded switch writes them.
CAUSES = ("ingress", "egress", "tail", "no_port", "priority", "multicast_empty", "loop", "assert", "limit", "no_program", "reconfigured")


class Follower:
    """Reads new lines of a run's raw records and passes them to a sampler."""

    def __init__(self, sampler: Sampler, folder: Path) -> None:
        self._sampler = sampler
        self._folder = folder
        self._control = CsvTail(folder / "controller.csv")
        self._switches: dict[Path, tuple[str, CsvTail]] = {}
        self._flows = [
            (flow.name, role, JsonTail(folder / f"{flow.name}.{role}.jsonl"))
            for flow in sampler.experiment.flows
            for role in record_roles(flow)
        ]
        # iperf3 reports a flow only at its end: until then, use the last switch's bytes to the receiver.
        ports = sampler.experiment.topology.ports()
        last_hops = [(ports[line.receiver][0].peer, ports[line.receiver][0].peer_port) for line in sampler.lines]
        self._tcp = {
            hop: line
            for hop, line in zip(last_hops, sampler.lines)
            if isinstance(line.flow.settings, TcpSettings) and last_hops.count(hop) == 1
        }
        self._late = {(line.flow.name, line.role) for line in self._tcp.values()}
        # The counts of a port at its switch's restart, by its file.
        self._before: dict[tuple[str, int], tuple[Path, tuple[float, ...], tuple[float, ...]]] = {}

    def poll(self, until_s: float) -> None:
        """Take in what there is, and samples up to an instant."""
        for switch in self._sampler.experiment.topology.switches:
            for path in sorted(self._folder.glob(f"{switch}*.csv")):
                if path.stem.partition(".")[0] == switch:
                    self._switches.setdefault(path, (switch, CsvTail(path)))
        # A row that cannot be read costs a moment of the page, never the run.
        for path, (switch, tail) in self._switches.items():
            for row in tail.rows():
                with contextlib.suppress(ValueError, KeyError):
                    self._port(path, switch, row)
        for row in self._control.rows():
            with contextlib.suppress(ValueError, KeyError):
                self._sampler.control(
                    row["switch"],
                    int(row["port"]),
                    float(row["time_s"]),
                    int(row["connections"]),
                    float(row["fair_rate_bps"]),
                    counted(row),
                )
        for name, role, lines in self._flows:
            for record in lines.records() if (name, role) not in self._late else ():
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._sampler.flow(name, role, (record,))
        self._sampler.advance(until_s)

    def _port(self, path: Path, switch: str, row: dict[str, str]) -> None:
        key = (switch, int(row["port"]))
        values = port_values(row, list(CAUSES))
        last_path, offset, last = self._before.get(key, (path, (0.0,) * len(values), values))
        if path != last_path:
            offset = last
        sums = tuple(a + b for a, b in zip(offset, values))
        self._before[key] = (path, offset, sums)
        self._sampler.port(*key, float(row["unix_s"]), sums)
        line = self._tcp.get(key)
        if line is not None:
            packet_bytes = line.flow.settings.packet_bytes
            payload = packet_bytes - (52 if line.flow.tcp_settings.timestamps else 40)
            line.track.add(float(row["unix_s"]), (sums[1] * payload / (packet_bytes + ETHERNET_BYTES), 0.0))


class Following:
    """A progress that also shows the run on a page. Enter it before the run, leave it after."""

    def __init__(self, experiment: Experiment, options: Options, progress: Progress) -> None:
        self._experiment = experiment
        self._options = options
        self._progress = progress
        self._folder: Path | None = None
        self._follower: Follower | None = None
        self._timing: Timing | None = None
        self.session: Session | None = None
        self.server: Server | None = None

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *error: object) -> None:
        if self.server is not None:
            self.server.stop()

    @property
    def driver(self) -> None:
        """Nobody drives a run in real time."""

    def watching(self, folder: Path) -> Following:
        """Returns itself, once it knows where the run writes its records."""
        self._folder = folder
        return self

    def say(self, text: str) -> None:
        self._progress.say(text)

    def show(self, snapshot: Snapshot) -> None:
        self._progress.show(snapshot)
        if self._follower is None:
            self._start(time.time() - snapshot.elapsed_s)
        if self._follower is not None and self._timing is not None:
            self._take(min(time.time() - _BEHIND_S, self._timing.end_s))

    def _start(self, begin_s: float) -> None:
        if self._folder is None:
            return
        self._timing = Timing(begin_s, begin_s + self._experiment.duration_s)
        sampler = Sampler(self._experiment, self._timing, CAUSES, estimate_averages=True)
        self.session = Session(self._experiment, sampler, MININET.name, Pace(), NOTE)
        self._follower = Follower(sampler, self._folder)
        self.server = Server(self.session, self._options.port)
        self.server.start()
        self._progress.say(f"live view: {self.server.url}")

    def _take(self, until_s: float) -> None:
        assert self._follower is not None and self.session is not None
        self._follower.poll(until_s)
        if self.session.sampler.times:
            self.session.shares.advance(self.session.sampler.times[-1], self.session.sampler.complete)

    def close(self) -> None:
        """The flows have ended: the last records are there."""
        self._progress.close()
        if self._timing is not None and self.session is not None:
            self._take(self._timing.end_s)
            self.session.pace.finished = True
            self.session.publish()

    def judged(self, true: Fidelity) -> None:
        """The verdict on the run."""
        if self.session is not None:
            self.session.pace.doubt = doubt(true.verdict, [r.what for r in true.reasons])
            self.session.publish()

    def linger(self, say: Callable[[str], None]) -> None:
        if self.server is not None:
            pages = self.server.pages
            linger(self.server.url, lambda: (pages.opened, pages.watching), say)
