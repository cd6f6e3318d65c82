"""What the compiled module makes of the controller's messages, beside protobuf's own library."""

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller.core import Rewrites, counter_rows
from fairlane.controller.p4info import P4Info

native = pytest.importorskip("fairlane.native", reason="needs fairlane.native (make build)")

PPM = st.integers(0, 2**32 - 1)


def write(rewrites, p4info, rates):
    made = entries(rates)
    return rewrites.set(len(rates), lambda: made, [p4info.values(action, parameters) for _, _, action, parameters in made])


def entries(rates):
    return [
        (
            "AlsEgress.fair_rate.fair_rate",
            {"standard_metadata.egress_port": port},
            "AlsEgress.fair_rate.set_fair_rate",
            {"rate_bps": rate, "utilisation_ppm": utilisation},
        )
        for port, (rate, utilisation) in enumerate(rates, 1)
    ]


def test_rewritten_requests_are_protobufs_own(p4info: P4Info) -> None:
    rates = st.lists(st.tuples(PPM, PPM), max_size=5)

    @given(rates, rates)
    def holds(first, second):
        rewrites = Rewrites(p4info)
        for given_rates in (first, second):
            rewriter = native.Rewriter(write(rewrites, p4info, first).request.SerializeToString())
            told = (given_rates * 5)[: len(first)] if given_rates else first
            write(rewrites, p4info, told)
            # Before `message`, whose values would be in the request then.
            encoded = rewriter.encoded(rewrites.values)
            assert p4r.WriteRequest.FromString(encoded) == rewrites.message()
            again = write(Rewrites(p4info), p4info, told).message()
            assert encoded == again.SerializeToString()

    holds()


def test_a_rewriter_refuses_what_does_not_fit(p4info: P4Info) -> None:
    request = write(Rewrites(p4info), p4info, [(1, 2)]).request.SerializeToString()
    for values in ([], [[b"1"]], [[b"1", b"2", b"3"]], [[b"1", b"2"], [b"1", b"2"]]):
        with pytest.raises(ValueError, match="values"):
            native.Rewriter(request).encoded(values)
    with pytest.raises(ValueError, match="no P4Runtime message"):
        native.Rewriter(b"\xff")


@given(st.lists(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62)))))
def test_rows_of_counters_are_protobufs_own(responses):
    messages = []
    for rows in responses:
        message = p4r.ReadResponse()
        for counter, index, packets, size in rows:
            entry = message.entities.add().counter_entry
            entry.counter_id = counter
            entry.index.index = index
            entry.data.packet_count, entry.data.byte_count = packets, size
        messages.append(message)
    entities = [e for message in messages for e in message.entities]
    assert native.counter_rows([m.SerializeToString() for m in messages]) == counter_rows(entities)
    with pytest.raises(ValueError, match="no P4Runtime message"):
        native.counter_rows([b"\xff"])
