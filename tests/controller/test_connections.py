from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller.connections import Connection, ConnectionCounter

digests = st.builds(
    Connection,
    epoch=st.integers(1, 3),
    egress_port=st.integers(0, 3),
    multicast_group=st.just(0),
    src_address=st.integers(0, 5),
    dst_address=st.integers(0, 5),
)


@given(st.lists(digests))
def test_counts_distinct_pairs_per_port_and_interval(seen):
    counter = ConnectionCounter()
    for digest in seen:
        counter.add(digest)
    for epoch in (1, 2, 3):
        expected = {}
        for d in {d for d in seen if d.epoch == epoch}:
            expected[d.egress_port] = expected.get(d.egress_port, 0) + 1
        assert counter.close(epoch, {}) == expected
    assert counter.late == 0


def test_a_report_of_a_closed_interval_is_late_not_counted():
    counter = ConnectionCounter()
    counter.close(7, {})
    counter.add(Connection(7, 1, 0, 1, 2))
    assert counter.late == 1
    assert counter.close(8, {}) == {}


def test_a_pair_sent_to_a_group_counts_at_each_port_of_the_group():
    counter = ConnectionCounter()
    counter.add(Connection(1, 0, 5, 1, 0xE0000001))
    counter.add(Connection(1, 3, 0, 1, 2))
    assert counter.close(1, {5: (2, 3)}) == {2: 1, 3: 2}


def test_the_same_pair_as_unicast_twice_at_a_port_is_one_connection():
    counter = ConnectionCounter()
    counter.add(Connection(1, 3, 0, 1, 2))
    counter.add(Connection(1, 3, 0, 1, 2))
    counter.add(Connection(1, 3, 0, 2, 1))
    assert counter.close(1, {}) == {3: 2}
