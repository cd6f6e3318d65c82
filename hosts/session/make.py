"""The session of a flow end, by its algorithm and role."""

from __future__ import annotations

from hosts.algorithms import ALGORITHMS
from hosts.algorithms.base import AckDetail
from hosts.session.common import Options, Recorder, Rng
from hosts.session.receiver import ReceiverSession
from hosts.session.sender import SenderSession

ROLES = ("sender", "receiver")


def is_layered(options: Options) -> bool:
    """Whether its data goes to groups."""
    return ALGORITHMS[options.algorithm].layered


def make_session(
    role: str, options: Options, parameters: object, rng: Rng, unix_offset_s: float, record: Recorder
) -> SenderSession | ReceiverSession:
    """`parameters`: the algorithm's, the same at both ends. The receiver asks the sending half whether it wants acknowledgements."""
    kind = ALGORITHMS[options.algorithm]
    sender = kind.sender(parameters)
    if role == "sender":
        return SenderSession(options, sender, rng, unix_offset_s, record, kind.layered)
    acks = sender.interests.acks is not AckDetail.NONE
    return ReceiverSession(options, kind.receiver(parameters), rng, unix_offset_s, record, acks, kind.layered)
