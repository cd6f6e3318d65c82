"""What a run on Mininet needs and this machine lacks."""

from __future__ import annotations

from fairlane import probes

_SAYS = {
    "iperf3": "needs iperf3 (apt-get install iperf3)",
    "simple_switch_grpc": "BMv2 is not installed: no simple_switch_grpc in PATH",
}


def for_mininet(*programs: str, built: tuple[str, ...] = ("fairlane-switch", "fairlane-compile")) -> str:
    """The first reason not to run a test; "" where nothing is missing. programs: besides those that `make build` builds."""
    for name in programs:
        if probes.program(name) is None:
            return _SAYS[name]
    if not probes.is_root():
        return "needs root"
    if not probes.has_mininet():
        return "needs Mininet (apt-get install mininet)"
    if not all(probes.program(name) for name in built):
        return f"needs {' and '.join(built)} (make build)"
    return ""
