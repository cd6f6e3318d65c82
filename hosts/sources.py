"""The source of a flow's data: unlimited, or an application with its own rate."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_type_hints

from fairlane.hosts import arguments

if TYPE_CHECKING:
    from fairlane.native import Application


def check_positive(owner: object, *names: str) -> None:
    """ValueError for a field that is neither None nor positive and finite."""
    for name in names:
        value = getattr(owner, name)
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name}: must be positive and finite, got {value:g}")


def check_shape(shape: float | None) -> None:
    """Of Pareto's distribution. ValueError."""
    if shape is not None and not 1 < shape < float("inf"):
        raise ValueError(f"shape: Pareto periods with a finite mean need a shape above 1, got {shape:g}")


def check_gaps(gaps: str, shape: float | None) -> None:
    """Of a renewal source. ValueError."""
    if (gaps == "pareto") != (shape is not None):
        raise ValueError(
            "shape: of pareto gaps, above 1, and of no others" if shape is not None else "shape: pareto gaps need one, above 1"
        )


S = TypeVar("S", bound="Spelled")


class Spelled:
    """A dataclass that a command line spells FIRST:NAME=VALUE,...: its first field, and what differs from the defaults."""

    NOUN = ""
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def text(self) -> str:
        """`on-off:rate_bps=1e6,on_s=0.5`, as `parse` takes it."""
        first, *others = [f.name for f in fields(self)]
        begin: str = getattr(self, first)
        given = [f"{name}={getattr(self, name)}" for name in others if getattr(self, name) != getattr(type(self), name)]
        return begin + (":" + ",".join(given) if given else "")

    @classmethod
    def parse(cls: type[S], text: str) -> S:
        """ValueError names what is wrong."""
        first, *others = [f.name for f in fields(cls)]
        known = get_type_hints(cls)
        start, _, given = text.partition(":")
        values: dict[str, Any] = {first: arguments.typed(start, known[first])}
        for assignment in filter(None, given.split(",")):
            name, equals, value = assignment.partition("=")
            if not equals or name not in others:
                raise ValueError(f"{assignment!r}: a {cls.NOUN} knows {', '.join(f'{n}=' for n in others)}")
            values[name] = arguments.typed(value, known[name])
        return cls(**values)


@dataclass(frozen=True)
class Source(Spelled):
    """An application's data, above the transport's allowed rate. cbr: rate_bps. on-off: rate_bps in on periods; on_s, off_s: mean lengths of
    the periods; shape: of Pareto's distribution, > 1; None: exponential. renewal: single packets at rate_bps on average; gaps: between them, exponential
    (Poisson arrivals), constant, or Pareto's of this shape; sizes: constant, the flow's; or exponential, with a mean of
    mean_bytes, each kept between what a packet needs at least and the flow's. mpeg4: video frames, their sizes times rate_scale. buffer_packets:
    packets that may wait in the sender. delay_threshold_s: a packet that comes more than this after the one before, or after its production,
    counts as delayed (75 ms in the SSVP paper's delivery index). film: pictures that an encoder follows the flow's rate with, GStreamer's on real
    hosts and the model of [RFC 8593 sec 5] in virtual time; file: the pictures, YUV4MPEG2 without compression, on real hosts alone; key_interval_s:
    between key frames, without it GStreamer's has 2 s and the model, as the RFC, none; min_rate_bps, max_rate_bps: the encoder's;
    most_waiting_s: a picture is left out while more waits in the sender than its rate carries in so long."""

    kind: Literal["persistent", "cbr", "on-off", "renewal", "mpeg4", "film"] = "persistent"
    rate_bps: float = 1_000_000.0
    on_s: float = 0.5
    off_s: float = 0.5
    shape: float | None = None
    gaps: Literal["exponential", "constant", "pareto"] = "exponential"
    sizes: Literal["constant", "exponential"] = "constant"
    mean_bytes: float = 500.0
    rate_scale: float = 1.0
    buffer_packets: int = 100
    delay_threshold_s: float = 0.075
    file: str = ""
    frames_per_second: float = 25.0
    key_interval_s: float | None = None
    min_rate_bps: float = 80_000.0
    max_rate_bps: float = 8_000_000.0
    most_waiting_s: float = 0.2

    NOUN = "source"

    def __post_init__(self) -> None:
        check_positive(self, "rate_bps", "on_s", "off_s", "mean_bytes", "rate_scale", "buffer_packets", "delay_threshold_s")
        check_positive(self, "frames_per_second", "key_interval_s", "min_rate_bps", "max_rate_bps", "most_waiting_s")
        check_shape(self.shape)
        if self.kind == "renewal":
            check_gaps(self.gaps, self.shape)
        if self.min_rate_bps > self.max_rate_bps:
            raise ValueError(f"min_rate_bps: give at most max_rate_bps, {self.max_rate_bps:g}, got {self.min_rate_bps:g}")
        if self.key_interval_frames is not None and self.key_interval_frames < 8:
            raise ValueError(f"key_interval_s: give 8 frames or more, {8 / self.frames_per_second:g} s, got {self.key_interval_s:g}")
        if set(self.file) & set(",="):
            raise ValueError(f"file: a name without comma and equals sign, got {self.file!r}")

    @property
    def limits(self) -> bool:
        """Whether there is not always more to send."""
        return self.kind != "persistent"

    @property
    def delay_threshold_ns(self) -> int:
        return round(self.delay_threshold_s * 1e9)

    @property
    def key_interval_frames(self) -> int | None:
        return None if self.key_interval_s is None else round(self.key_interval_s * self.frames_per_second)

    def application(self, outside: bool = False) -> Application | None:
        """What `fairlane.native` takes; None: always more to send. outside: a film is encoded by a program beside the sender."""
        from fairlane import native

        make = native.Application
        on, off = (period if self.shape is None else (period, self.shape) for period in (self.on_s, self.off_s))
        match self.kind:
            case "cbr":
                return make.cbr(round(self.rate_bps))
            case "on-off":
                return make.on_off(round(self.rate_bps), on, off)
            case "renewal":
                return make.renewal(
                    round(self.rate_bps),
                    self.gaps if self.shape is None else self.shape,
                    self.mean_bytes if self.sizes == "exponential" else None,
                )
            case "mpeg4":
                return make.mpeg4(self.rate_scale)
            case "film":
                rates = (self.min_rate_bps, self.max_rate_bps, round(self.most_waiting_s * 1e9))
                return make.film(self.frames_per_second, self.key_interval_frames, *rates, outside=outside)
        return None
