"""What a packet looks like on each link of its way: `hops.py FOLDER` reads the captures of `fairlane run ... --pcap FOLDER`.

Prints the first packet from h1 to h3 link by link, and draws its time to live into FOLDER/hops.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap

LINKS = ("h1-s1", "s1-s2", "s2-s3", "s3-h3")
SOURCE, DESTINATION = "10.0.1.1", "10.0.3.3"


def main(folder: Path) -> int:
    drawn = []
    for link in LINKS:
        capture = folder / f"{link}.pcap"
        seen = [Ether(bytes(packet)) for packet in (rdpcap(str(capture)) if capture.is_file() else [])]
        first = next((p for p in seen if IP in p and (p[IP].src, p[IP].dst) == (SOURCE, DESTINATION)), None)
        if first is None:
            print(f"{link:6} nothing from {SOURCE} to {DESTINATION}")
            continue
        print(f"{link:6} {first.src} -> {first.dst}  time to live {first[IP].ttl}  header checksum {first[IP].chksum:#06x}")
        drawn.append((link, first[IP].ttl))
    if drawn:
        figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
        axes.step([link for link, _ in drawn], [ttl for _, ttl in drawn], where="mid", marker="o")
        axes.set_ylabel("time to live")
        figure.savefig(folder / "hops.png")
        print(f"plot: {folder / 'hops.png'}")
    return 0 if len(drawn) == len(LINKS) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
