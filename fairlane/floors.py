"""Warnings about flows that cannot work as intended: their minimum rate exceeds an equal share of the bottleneck, or its queue never marks."""

from __future__ import annotations

from fairlane.experiments import paths
from fairlane.experiments.kinds import ALWAYS_ECN, AlgorithmSettings
from fairlane.experiments.model import Experiment
from fairlane.inputs import toml_text
from fairlane.inputs.schema import either
from fairlane.schemes import registry


def warnings(experiment: Experiment) -> list[str]:
    """Warnings of both kinds below."""
    return _least_rates(experiment) + _unmarked(experiment)


def _unmarked(experiment: Experiment) -> list[str]:
    """A warning for DCTCP and Prague flows across a bottleneck that does not mark: they are SACK flows there [RFC 8257 sec 3.5]."""
    port = experiment.topology.port(*experiment.bottleneck)
    kinds = [kind for kind in ALWAYS_ECN if any(flow.kind == kind for flow in experiment.flows)]
    if port.link.marks or not kinds:
        return []
    always = [name for name, scheme in registry.SCHEMES.items() if scheme.always_marks]
    asked = [name for name in registry.names(marking=True) if name not in always]
    return [
        f"{', '.join(kinds)}: the queue of {port.node}->{port.peer} is {port.link.queue} and marks no packet, so these flows react only to losses, "
        f"like tcp-sack. A queue that marks: --queue {either(always)}, or queue = {either(list(map(toml_text.value, always)))} of the link "
        f"(or {either(asked)} with ecn = true)."
    ]


def _least_rates(experiment: Experiment) -> list[str]:
    """A warning for each flow kind whose default minimum rate exceeds an equal share of the bottleneck. It names parameter, value, share and remedy.
    A minimum rate that the experiment itself sets gives no warning: trabol-5 sweeps it up to half of the link."""
    link = experiment.topology.port(*experiment.bottleneck)
    crossing = [f for f in experiment.flows if link in paths.there(experiment, f)]
    fair_bps = link.link.rate_bps / max(1, len(crossing))
    too_high: dict[tuple[str, float], list[AlgorithmSettings]] = {}
    for flow in crossing:
        settings = flow.settings
        if isinstance(settings, AlgorithmSettings) and settings.given.get("min_rate_bps") is None:
            least_bps = getattr(settings.parameters, "least_rate_bps", getattr(settings.parameters, "min_rate_bps", 0.0))
            if least_bps > fair_bps:
                too_high.setdefault((flow.kind, least_bps), []).append(settings)
    return [
        _warning(kind, least_bps, found, len(crossing), link.link.rate_bps, f"{link.node}->{link.peer}")
        for (kind, least_bps), found in too_high.items()
    ]


def _warning(kind: str, least_bps: float, found: list[AlgorithmSettings], flows: int, rate_bps: float, link: str) -> str:
    count, fair_bps = len(found), rate_bps / flows
    greatest_bps = getattr(found[0].parameters, "max_rate_bps", found[0].maximum_rate_bps)
    part = min(1.0, count * least_bps / rate_bps)
    return (
        f"{kind}: min_rate_bps is {least_bps / 1e6:g} Mb/s by default, with max_rate_bps at {greatest_bps / 1e6:g} Mb/s, and an "
        f"equal share of {link} among {flows} flows is {fair_bps / 1e6:g} Mb/s. {count} {kind} {'flow keeps' if count == 1 else 'flows keep'} {part:.0%} "
        f"of the link's {rate_bps / 1e6:g} Mb/s even if packets are lost, so other flows starve. Set a lower value: "
        f"--set {kind}.min_rate_bps={fair_bps / 10:g}, or min_rate_bps in [{kind}] of the experiment's file."
    )
