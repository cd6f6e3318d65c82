from typing import Any

from mininet.net import Mininet

class CLI:
    mn: Mininet[Any, Any]
    def __init__(self, mininet: Mininet[Any, Any], *, script: str | None = None) -> None: ...
