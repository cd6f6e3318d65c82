"""Rate-adaptation algorithms by name: pure state machines, see `hosts.algorithms.base`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hosts.algorithms.als import AlsParameters, AlsReceiver, AlsSender
from hosts.algorithms.base import Receiver, Sender


@dataclass(frozen=True, slots=True)
class Algorithm:
    """How to make the two halves of an algorithm."""

    parameters: type
    """A frozen dataclass; every field has a default."""
    sender: Callable[..., Sender]
    """Called with one argument, the parameters."""
    receiver: Callable[[], Receiver]


ALGORITHMS: dict[str, Algorithm] = {
    "als": Algorithm(AlsParameters, AlsSender, AlsReceiver),
}
