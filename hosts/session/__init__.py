"""The two ends of a flow without clock, socket or randomness of their own: what `hosts.runner_udp` does input and output for.

A session is told what happened and when (`start`, `wake`, `on_direct`, `on_control`, `finish`), lets its algorithm decide, and
leaves what is to be sent in its outbox; records go to a function that it was given. Times are seconds on a clock that never goes
backwards.
"""
