class Intf:
    ip: str | None
    prefixLen: int | str | None

class Link: ...
