from typing import Any

# switch/python describes what is here.
def __getattr__(name: str) -> Any: ...
