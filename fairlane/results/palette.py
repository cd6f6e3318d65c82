"""One colour for each scheme, in every plot and page; the colour-blind can distinguish them too."""

from __future__ import annotations

# Okabe and Ito's palette, and Tol's muted one where more than eight are needed. Schemes that papers compare are far apart.
OF_KIND = {
    "als": "#0072B2",
    "als-layered": "#332288",
    "daa": "#009E73",
    "aimd-rtcp": "#E69F00",
    "rap": "#0072B2",
    "rap-fine": "#56B4E9",
    "trabol": "#009E73",
    "trabol-memory": "#117733",
    "ssvp": "#E69F00",
    "ssvp-adp": "#0072B2",
    "gaimd": "#CC79A7",
    "tfrc": "#009E73",
    "nada": "#56B4E9",
    "scream": "#CC79A7",
    "gcc": "#882255",
    "rcp": "#999933",
    "xcp": "#117733",
    "abc": "#AA4499",
    "cbr": "#661100",
    "on-off": "#AA4499",
    "renewal": "#332288",
    "mpeg4": "#44AA99",
    "tcp-tahoe": "#F0A30A",
    "tcp-reno": "#D55E00",
    "tcp-newreno": "#CC6677",
    "tcp-sack": "#882255",
    "tcp-cubic": "#999933",
    "tcp-dctcp": "#332288",
    "tcp-prague": "#117733",
    "tcp-bbr": "#44AA99",
}
LABELS = {
    "als": "ALS",
    "als-layered": "ALS, layered",
    "daa": "DAA",
    "aimd-rtcp": "AIMD over RTCP",
    "rap": "RAP",
    "rap-fine": "RAP, fine grain",
    "trabol": "TRABOL",
    "trabol-memory": "TRABOL with memory",
    "ssvp": "SSVP",
    "ssvp-adp": "SSVP-ADP",
    "gaimd": "GAIMD",
    "tfrc": "TFRC",
    "nada": "NADA",
    "scream": "SCReAM",
    "gcc": "GCC",
    "rcp": "RCP",
    "xcp": "XCP",
    "abc": "ABC",
    "cbr": "constant bit rate",
    "on-off": "on-off",
    "renewal": "renewal",
    "mpeg4": "MPEG-4",
    "tcp-tahoe": "TCP Tahoe",
    "tcp-reno": "TCP Reno",
    "tcp-newreno": "TCP NewReno",
    "tcp-sack": "TCP SACK",
    "tcp-cubic": "TCP CUBIC",
    "tcp-dctcp": "DCTCP",
    "tcp-prague": "TCP Prague",
    "tcp-bbr": "BBR",
}
# Line styles (matplotlib) of kinds that share a colour with another kind. All others are solid.
LINES = {
    "rap": "--", "ssvp-adp": "-.", "tfrc": "--", "trabol": "-.", "ssvp": "--", "tcp-dctcp": "--", "nada": "--",
    "scream": "--",
    "gcc": "--",
    "rcp": ":",
    "xcp": ":",
    "abc": "-.",
    "tcp-prague": "-.", "tcp-bbr": "--",
    "renewal": ":",
}  # fmt: skip
SHARE, FAIR_RATE, COUNT, QUEUE, AVERAGE_MINIMUM, AVERAGE_MAXIMUM = "#000000", "#009E73", "#CC79A7", "#56B4E9", "#009E73", "#CC79A7"
"""What marks other things: a fair share, R_f, connections, a queue, thresholds of its average."""
OTHERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933", "#332288", "#44AA99")
"""For lines that belong to no scheme, in this order."""


def of_kind(kind: str) -> str:
    """The colour of a flow kind; one of a student's own gets one that is always the same."""
    return OF_KIND.get(kind) or OTHERS[sum(kind.encode()) % len(OTHERS)]


def line(kind: str) -> str:
    """The line of a flow kind, as matplotlib names it."""
    return LINES.get(kind, "-" if kind in OF_KIND else ":")


def label(kind: str) -> str:
    """How plots name a flow kind."""
    return LABELS.get(kind, kind)


def of(name: str, index: int) -> str:
    """The colour of a line: its scheme's where the name is one, otherwise by its place."""
    return OF_KIND.get(name) or OTHERS[index % len(OTHERS)]
