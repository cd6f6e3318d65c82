"""What the compiled module makes of the controller's messages, beside protobuf's own library."""

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller.plane.calls import Rewrites, Switch
from fairlane.controller.plane.names import Entry, Names, counter_rows

native = pytest.importorskip("fairlane.native", reason="needs fairlane.native (make build)")

PPM = st.integers(0, 2**32 - 1)


def rewrites(names: Names, rates: list[tuple[int, int]]) -> tuple[Rewrites, list]:
    """Of the fair rates of ports, and a list of what is on its way."""
    sent: list = []
    switch = Switch(0, "s1", {}, {}, names, lambda number, kind, request, call: sent.append(request))
    entries = [
        Entry("AlsEgress.fair_rate.fair_rate", {"standard_metadata.egress_port": port}, "AlsEgress.fair_rate.set_fair_rate", values(rate))
        for port, rate in enumerate(rates, 1)
    ]
    return switch.rewrites(entries), sent


def values(rate: tuple[int, int]) -> dict[str, int]:
    return dict(zip(("rate_bps", "utilisation_ppm"), rate))


def test_rewritten_requests_are_protobufs_own(p4info: Names) -> None:
    rates = st.lists(st.tuples(PPM, PPM), max_size=5)

    @given(rates, rates)
    def holds(first, second):
        made, sent = rewrites(p4info, first)
        for given_rates in (first, second):
            rewriter = native.Rewriter(made.request.SerializeToString())
            told = (given_rates * 5)[: len(first)] if given_rates else first
            made.write([values(rate) for rate in told])
            # Before `message`, whose values would be in the request then.
            encoded = rewriter.encoded(sent[-1].values)
            assert p4r.WriteRequest.FromString(encoded) == sent[-1].message()
            assert encoded == rewrites(p4info, told)[0].request.SerializeToString()

    holds()


def test_each_write_has_its_own_values(p4info: Names) -> None:
    """The message is changed in place, and made anew now and then; several may be on their way."""
    made, sent = rewrites(p4info, [(0, 0)])
    for number in range(1, 1100):
        made.write([values((number, 2 * number))])
    for number, request in enumerate(sent, 1):
        first, second = request.message().updates[0].entity.table_entry.action.action.params
        assert (int.from_bytes(first.value, "big"), int.from_bytes(second.value, "big")) == (number, 2 * number)


def test_a_rewriter_refuses_what_does_not_fit(p4info: Names) -> None:
    request = rewrites(p4info, [(1, 2)])[0].request.SerializeToString()
    for wrong in ([], [[b"1"]], [[b"1", b"2", b"3"]], [[b"1", b"2"], [b"1", b"2"]]):
        with pytest.raises(ValueError, match="values"):
            native.Rewriter(request).encoded(wrong)
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
