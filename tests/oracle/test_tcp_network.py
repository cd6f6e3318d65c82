"""TCP through the virtual network, p4src/als.p4 at both switches, against ns-2's committed results. Needs no ns-2.

Mean queues over RED are medians of three seeds on both sides. docs/tcp-against-ns2.md has all cells, and says why the few differ.
"""

from __future__ import annotations

import pytest

from fairlane.fabrics import virtual_fabric
from tests.oracle import tcp_network

pytestmark = [
    pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build"),
    pytest.mark.timeout(600),
]

SINGLE = tcp_network.single_runs(delayed_acks_too=False) + tcp_network.small_segment_runs()
# The other thresholds leave the queue empty at times, where ns-2 departs from the paper's RED: docs/tcp-against-ns2.md.
RED = {flavour: runs for (minimum, flavour), runs in tcp_network.red_runs().items() if minimum > 20}


ECN = tcp_network.ecn_runs()


def name(run: tuple) -> str:
    case, _, _, rule = run
    return "-".join(
        [
            case["flavour"],
            *([f"{case['rate_bps'] // 1000}kbit", "60B"] if "packet_bytes" in case else []),
            f"{case['rtt_ms']}ms",
            str(case["buffer_packets"]),
            *(["delack"] if case["delayed_ack"] else []),
            *([rule.replace(" ", "")] if rule else []),
        ]
    )


@pytest.fixture(scope="module")
def results() -> dict:
    """Of all cells; by their place in SINGLE, and by flavour over RED that drops and that marks."""
    wanted = [(case, options) for case, _, options, _ in SINGLE]
    wanted += [(case, {}) for red in (RED, ECN) for runs in red.values() for case, _ in runs]
    found = iter(tcp_network.run_all(wanted))
    single = [next(found) for _ in SINGLE]
    red, ecn = ({flavour: [next(found) for _ in runs] for flavour, runs in over.items()} for over in (RED, ECN))
    return {"single": single, "red": red, "ecn": ecn}


@pytest.mark.parametrize("index", range(len(SINGLE)), ids=[name(run) for run in SINGLE])
def test_one_flow_has_ns2s_throughput_and_loss_events(results, index):
    case, ns2, options, _ = SINGLE[index]
    ours = results["single"][index]
    assert tcp_network.ratio(ours["received_bytes"], ns2["received_bytes"]) == pytest.approx(1, abs=0.03), (ours, ns2)
    events = tcp_network.ratio(ours["loss_events"], ns2["loss_events"])
    if case["flavour"] == "cubic" and case["rtt_ms"] == 10 and not options:
        # RFC 9438 keeps up with Reno better than ns-2's Linux 2.6 does; the same cell under the old rule is held to 25%.
        assert events > 1.25
    else:
        assert events == pytest.approx(1, abs=0.25), (ours, ns2)


@pytest.mark.parametrize("flavour", RED)
def test_ten_flows_over_red_have_ns2s_mean_queue(results, flavour):
    ours, ns2 = tcp_network.medians(results["red"][flavour]), tcp_network.medians(r for _, r in RED[flavour])
    assert tcp_network.ratio(ours["mean_queue"], ns2["mean_queue"]) == pytest.approx(1, abs=0.10), (ours, ns2)
    assert tcp_network.ratio(ours["received_bytes"], ns2["received_bytes"]) == pytest.approx(1, abs=0.03), (ours, ns2)


@pytest.mark.parametrize("flavour", ECN)
def test_ten_ecn_capable_flows_have_ns2s_queue_and_reductions(results, flavour):
    ours, ns2 = tcp_network.medians(results["ecn"][flavour]), tcp_network.medians(r for _, r in ECN[flavour])
    assert tcp_network.ratio(ours["mean_queue"], ns2["mean_queue"]) == pytest.approx(1, abs=0.10), (ours, ns2)
    assert tcp_network.ratio(ours["received_bytes"], ns2["received_bytes"]) == pytest.approx(1, abs=0.025), (ours, ns2)
    assert tcp_network.ratio(ours["loss_events"], ns2["loss_events"]) == pytest.approx(1, abs=0.15), (ours, ns2)


def test_every_cell_is_in_the_page():
    page = (tcp_network.HERE.parents[1] / "docs" / "tcp-against-ns2.md").read_text()
    for case, *_, rule in tcp_network.single_runs() + tcp_network.small_segment_runs():
        assert tcp_network.cell(case, rule) in page
    for runs in (*tcp_network.red_runs().values(), *tcp_network.ecn_runs().values()):
        assert tcp_network.red_cell(runs[0][0]) in page
