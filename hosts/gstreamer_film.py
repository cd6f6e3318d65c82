"""`python3 gstreamer_film.py`: encodes or shows a film by GStreamer, beside an end of a flow, over a socket that it inherits.

It runs under Debian's own Python, which has GStreamer's bindings (python3-gi), and imports nothing of Fairlane's.

encode     pictures of a YUV4MPEG2 file, repeated after its end, to H.264 in RTP (RFC 6184); the bit rate follows the sender's messages
decode     arriving RTP packets to pictures, with their times; the packets are stored in a file
pictures   such a file of packets to pictures: the number of each picture, then its bytes, on standard output
check      prints the missing parts

Messages from encoder to sender: instant of the picture, 64 bits, and an RTP packet. From sender to encoder: bit/s for the encoder, the flow's bit/s, bytes
that wait. From receiver to decoder: instant of arrival, and an RTP packet. Instants are nanoseconds of CLOCK_MONOTONIC, numbers big-endian.
"""

import argparse
import json
import mmap
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Bindings = Any
"""Of GStreamer: its modules and objects, which have no types."""
CLOCK_HZ = 90_000
NS = 1_000_000_000
ELEMENTS = ("appsrc", "x264enc", "rtph264pay", "appsink", "rtph264depay", "avdec_h264", "videoconvert")
# Of the encoder's rate, as its rate control may overshoot it; a change of the rate below this part is not worth a new set-up.
VBV_MS, SMALLEST_CHANGE = 160, 0.01
MOST_BYTES = 1 << 16


def load() -> tuple[Bindings, Bindings]:
    """GStreamer's bindings. Exits with a sentence where they are missing."""
    try:
        import gi

        gi.require_version("Gst", "1.0")
        gi.require_version("GstApp", "1.0")
        from gi.repository import Gst, GstApp

        Gst.init(None)
    except (ImportError, ValueError) as error:
        sys.exit(f"missing: {error}")
    missing = [name for name in ELEMENTS if Gst.ElementFactory.find(name) is None]
    if missing:
        sys.exit(f"missing: {', '.join(missing)}")
    return Gst, GstApp


class Pictures:
    """A YUV4MPEG2 file without compression, 4:2:0."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = self._bytes.find(b"\n")
        words = self._bytes[:end].split()
        if words[:1] != [b"YUV4MPEG2"]:
            sys.exit(f"{path}: not YUV4MPEG2")
        given = {word[:1]: word[1:] for word in words[1:]}
        self.width, self.height = int(given[b"W"]), int(given[b"H"])
        if not given.get(b"C", b"420").startswith(b"420") or self.width % 8 or self.height % 2:
            sys.exit(f"{path}: pictures must be 4:2:0, of a width in eights and an even height")
        self.size = self.width * self.height * 3 // 2
        self._first = end + 1
        self._each = len(b"FRAME\n") + self.size
        self.count = (len(self._bytes) - self._first) // self._each
        if self.count == 0:
            sys.exit(f"{path}: no picture")

    def __getitem__(self, number: int) -> bytes:
        start = self._first + number % self.count * self._each
        if self._bytes[start : start + 6] != b"FRAME\n":
            sys.exit("the film's pictures have parameters of their own, which are not read here")
        return self._bytes[start + 6 : start + self._each]


def watch(Gst: Bindings, pipeline: Bindings) -> None:
    """An error of the pipeline ends the process."""

    def ended(bus: Bindings, message: Bindings) -> Bindings:
        if message.type == Gst.MessageType.ERROR:
            error, _ = message.parse_error()
            print(f"GStreamer: {error.message}", file=sys.stderr, flush=True)
            import os

            os._exit(2)
        return Gst.BusSyncReply.PASS

    pipeline.get_bus().set_sync_handler(ended)


def encode(args: argparse.Namespace) -> None:
    Gst, _ = load()
    pictures, link = Pictures(args.file), socket.socket(fileno=args.fd)
    fps = args.frames_per_second
    pipeline = Gst.parse_launch(
        f"appsrc name=in format=time is-live=true max-buffers=4 caps=video/x-raw,format=I420,width={pictures.width},height={pictures.height},framerate=0/1"
        f" ! x264enc name=encoder tune=zerolatency speed-preset=superfast threads=1 sliced-threads=false byte-stream=true aud=false bframes=0"
        f" key-int-max={args.key_interval_frames} vbv-buf-capacity={VBV_MS} bitrate={max(1, args.first_rate // 1000)}"
        f" ! video/x-h264,profile=main ! rtph264pay mtu={args.mtu} pt=96 ssrc=1 timestamp-offset=0 seqnum-offset=0 config-interval=-1 aggregate-mode=zero-latency"
        " ! appsink name=out emit-signals=true sync=false"
    )
    watch(Gst, pipeline)
    source, encoder = pipeline.get_by_name("in"), pipeline.get_by_name("encoder")
    taken: dict[int, int] = {}

    def encoded(sink: Bindings) -> Bindings:
        buffer = sink.emit("pull-sample").get_buffer()
        packet = buffer.extract_dup(0, buffer.get_size())
        try:
            # x264enc moves the buffers' own times.
            link.send(struct.pack(">Q", taken[round(struct.unpack_from(">I", packet, 4)[0] * fps / CLOCK_HZ)]) + packet)
        except OSError:
            return Gst.FlowReturn.EOS
        return Gst.FlowReturn.OK

    pipeline.get_by_name("out").connect("new-sample", encoded)
    pipeline.set_state(Gst.State.PLAYING)
    allowed_bps, flow_bps, waiting, set_bps, number = args.first_rate, args.first_rate, 0, args.first_rate, 0
    while True:
        due = args.start_ns + round(number * NS / fps)
        while (left := due - time.monotonic_ns()) > 0 or select.select([link], [], [], 0)[0]:
            if select.select([link], [], [], max(0, left) / NS)[0]:
                said = link.recv(MOST_BYTES)
                if not said:
                    pipeline.set_state(Gst.State.NULL)
                    return
                allowed_bps, flow_bps, waiting = struct.unpack(">QQQ", said)
        # A process that was kept waiting goes on with the picture of the present.
        late = (time.monotonic_ns() - due) * fps // NS
        number += max(0, int(late))
        if 8 * NS * waiting <= flow_bps * args.most_waiting_ns:
            if abs(allowed_bps - set_bps) > SMALLEST_CHANGE * set_bps:
                encoder.set_property("bitrate", max(1, allowed_bps // 1000))
                set_bps = allowed_bps
            buffer = Gst.Buffer.new_wrapped(pictures[number])
            buffer.pts = round(number * NS / fps)
            buffer.duration = round(NS / fps)
            taken[number] = time.monotonic_ns()
            if len(taken) > 100:
                del taken[next(iter(taken))]
            source.emit("push-buffer", buffer)
        number += 1


class Decoder:
    """RTP packets in, pictures out: (RTP timestamp, bytes), by threads of GStreamer's."""

    def __init__(self, shown: Callable[[int, Bindings], None], pictures: bool) -> None:
        self.Gst, _ = load()
        self._rest = "videoconvert ! video/x-raw,format=I420 ! " if pictures else ""
        self.pipeline = self.Gst.parse_launch(
            "appsrc name=in format=time max-bytes=0 caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96"
            " ! rtph264depay ! video/x-h264,stream-format=byte-stream,alignment=au ! avdec_h264 max-threads=1"
            f" ! {self._rest}appsink name=out emit-signals=true sync=false max-buffers=8"
        )
        watch(self.Gst, self.pipeline)
        self.over = threading.Event()
        self._source = self.pipeline.get_by_name("in")
        sink = self.pipeline.get_by_name("out")

        def decoded(sink: Bindings) -> Bindings:
            buffer = sink.emit("pull-sample").get_buffer()
            shown(round(buffer.pts * CLOCK_HZ / NS), buffer)
            return self.Gst.FlowReturn.OK

        sink.connect("new-sample", decoded)
        sink.connect("eos", lambda sink: self.over.set())
        self.pipeline.set_state(self.Gst.State.PLAYING)

    def push(self, packet: bytes) -> None:
        buffer = self.Gst.Buffer.new_wrapped(packet)
        buffer.pts = round(struct.unpack_from(">I", packet, 4)[0] * NS / CLOCK_HZ)
        self._source.emit("push-buffer", buffer)

    def end(self) -> None:
        """Waits until all pictures are out."""
        self._source.emit("end-of-stream")
        self.over.wait(20)
        self.pipeline.set_state(self.Gst.State.NULL)


def decode(args: argparse.Namespace) -> None:
    link = socket.socket(fileno=args.fd)
    with open(args.packets, "wb", buffering=MOST_BYTES) as packets, open(args.shown, "w") as log:

        def shown(timestamp: int, buffer: Bindings) -> None:
            log.write(json.dumps({"timestamp": timestamp, "shown_ns": time.monotonic_ns()}) + "\n")

        decoder = Decoder(shown, pictures=False)
        while message := link.recv(MOST_BYTES):
            packets.write(struct.pack(">I", len(message)) + message)
            decoder.push(message[8:])
        decoder.end()


def pictures(args: argparse.Namespace) -> None:
    def shown(timestamp: int, buffer: Bindings) -> None:
        sys.stdout.buffer.write(struct.pack(">II", timestamp, buffer.get_size()) + buffer.extract_dup(0, buffer.get_size()))

    decoder = Decoder(shown, pictures=True)
    with open(args.packets, "rb") as file:
        while len(head := file.read(4)) == 4:
            message = file.read(struct.unpack(">I", head)[0])
            decoder.push(message[8:])
    decoder.end()
    sys.stdout.buffer.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Encodes or shows a film beside an end of a flow.")
    commands = parser.add_subparsers(required=True)
    encoder = commands.add_parser("encode")
    encoder.set_defaults(run=encode)
    encoder.add_argument("--file", required=True)
    encoder.add_argument("--frames-per-second", type=float, required=True)
    for name in ("fd", "mtu", "key-interval-frames", "first-rate", "most-waiting-ns", "start-ns"):
        encoder.add_argument(f"--{name}", type=int, required=True)
    decoder = commands.add_parser("decode")
    decoder.set_defaults(run=decode)
    decoder.add_argument("--fd", type=int, required=True)
    decoder.add_argument("--packets", required=True, help="file for the packets that come")
    decoder.add_argument("--shown", required=True, help="file for the instants of pictures, JSON lines")
    again = commands.add_parser("pictures")
    again.set_defaults(run=pictures)
    again.add_argument("packets")
    commands.add_parser("check").set_defaults(run=lambda args: load())
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
