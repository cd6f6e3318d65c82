"""`fairlane-link` on veth pairs: each frame comes out once, in order, whole, and as late as the link's delay."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes

ROOT = probes.ROOT
LINK = probes.program("fairlane-link")
needs_link = pytest.mark.skipif(LINK is None, reason="fairlane-link is not built (make build)")

# In a namespace of its own: a1 - a2 | fairlane-link | b1 - b2, frames both ways with the kernel's times at the outer ends.
SCRIPT = r"""
import json, signal, socket, struct, subprocess, sys, time
link, report, delay = sys.argv[1:4]
for pair in "ab":
    subprocess.run(["ip", "link", "add", pair + "1", "type", "veth", "peer", "name", pair + "2"], check=True)
    for name in (pair + "1", pair + "2"):
        open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w").write("1")
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
# What is sent before the kernel has noticed both ends is dropped.
while any(one["operstate"] != "UP" for one in json.loads(subprocess.check_output(["ip", "-j", "link"])) if one["ifname"] != "lo"):
    time.sleep(0.01)
carrier = subprocess.Popen([link, "--link", f"a2,b1={delay}", "--report", report], stdout=subprocess.PIPE, text=True)
assert carrier.stdout.readline().startswith("ready 1 links")
try:
    ends = []
    for name in ("a1", "b2"):
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        one.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE: all is read in the end
        one.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        one.bind((name, 3))
        one.settimeout(2.0)
        ends.append(one)
    sent = {0: [], 1: []}
    for number in range(200):
        for end in (0, 1):
            sent[end].append(time.time())
            ends[end].send(b"\2" + bytes(10) + bytes([end]) + b"\x88\xb5" + struct.pack("!I", number) + bytes(64 + 7 * number))
        time.sleep(0.002)
    found = {0: [], 1: []}
    for end in (0, 1):
        while len(found[end]) < 200:
            data, ancillary, _, _ = ends[end].recvmsg(4000, 64)
            seconds, nanos = struct.unpack("qq", ancillary[0][2])
            number = struct.unpack("!I", data[14:18])[0]
            found[end].append([number, data[11], len(data), seconds + nanos / 1e9 - sent[1 - end][number]])
finally:
    carrier.send_signal(signal.SIGTERM)
assert carrier.wait(5) == 0
print(json.dumps(found))
"""


@pytest.mark.root
@needs_link
@pytest.mark.parametrize("delay_ms", [0.5, 5])
def test_frames_are_delayed_and_nothing_else(delay_ms: float, tmp_path: Path) -> None:
    if not probes.is_root():
        pytest.skip("a network namespace needs root")
    report = tmp_path / "report.json"
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", SCRIPT, str(LINK), str(report), f"{delay_ms}ms"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    for end in ("0", "1"):
        frames = found[end]
        assert [(number, sender, length) for number, sender, length, _ in frames] == [
            (n, 1 - int(end), 18 + 64 + 7 * n) for n in range(200)
        ]
        errors_us = [1e6 * (taken_s - delay_ms / 1e3) for *_, taken_s in frames]
        # Sent is when this script asked the kernel to send, a little before the frame reached the line.
        assert min(errors_us) >= -5
        assert statistics.median(errors_us) < 1000, "the machine is too busy, or the line is late"
    directions = json.loads(report.read_text())
    assert [(d["from"], d["to"], d["frames"], d["dropped"], d["missed"], d["failed"]) for d in directions] == [
        ("a2", "b1", 200, 0, 0, 0),
        ("b1", "a2", 200, 0, 0, 0),
    ]
    for d in directions:
        assert 0 <= d["late_p50_us"] <= d["late_p99_us"] <= d["late_max_us"] and d["late_mean_us"] < 1000


@needs_link
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--link", "a=5ms"], "is not of the form A,B=DELAY"),
        (["--link", "a,a=5ms"], "a link has two ends, and both are a"),
        (["--link", "a,b=fast"], "fast"),
        ([], "--link <A,B=DELAY>"),
    ],
)
def test_bad_links_are_refused(arguments: list[str], message: str) -> None:
    done = subprocess.run([str(LINK), *arguments], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.mark.root
@needs_link
def test_an_interface_that_is_not_there_is_named() -> None:
    if not probes.is_root():
        pytest.skip("a raw socket needs root")
    done = subprocess.run(
        ["unshare", "--net", str(LINK), "--link", "nowhere1,nowhere2=1ms"], capture_output=True, text=True, timeout=10, check=False
    )
    assert (done.returncode, done.stderr) == (
        1,
        "fairlane-link: interface nowhere1 does not exist: see `ip link` for those there are (in this network namespace)\n",
    )


# Its lines go to a full disk: it carries frames all the same, and says in the end what it carried.
FULL = r"""
import signal, subprocess, sys, time
from pathlib import Path
link, report = sys.argv[1:3]
subprocess.run(["ip", "link", "add", "a1", "type", "veth", "peer", "name", "b1"], check=True)
with open("/dev/full", "w") as full:
    carrier = subprocess.Popen([link, "--link", "a1,b1=1ms", "--report", report], stdout=full, stderr=full)
deadline = time.monotonic() + 10
# A heading, and a socket at each end.
while len(Path("/proc/net/packet").read_text().splitlines()) < 3 and time.monotonic() < deadline:
    time.sleep(0.01)
time.sleep(0.2)
carrier.send_signal(signal.SIGTERM)
sys.exit(carrier.wait(5))
"""


@pytest.mark.root
@needs_link
def test_a_full_disk_of_its_log_does_not_end_it(tmp_path: Path) -> None:
    if not probes.is_root():
        pytest.skip("a network namespace needs root")
    report = tmp_path / "report.json"
    command = ["unshare", "--net", sys.executable, "-c", FULL, str(LINK), str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(report.read_text())
