"""The page that shows a run, on any fabric."""

from __future__ import annotations

from rich.console import Console

from fairlane.experiments.model import Experiment
from fairlane.fabrics import progress
from fairlane.fabrics.base import Fabric
from fairlane.live.follow import Following
from fairlane.live.view import LiveRun, Options


def page_of(fabric: Fabric, experiment: Experiment, options: Options, console: Console) -> Following | LiveRun:
    """A run in real time is followed by its records; in virtual time the page drives it. Enter it before the run, leave it after."""
    shown = progress.for_console(console)
    return Following(experiment, options, shown) if fabric.real_time else LiveRun(options, shown)
