"""`fairlane list`: every name that `fairlane run` takes."""

from __future__ import annotations

from fairlane import ad_hoc_networks
from fairlane.commands.app import App
from fairlane.experiments import kinds, loader
from fairlane.experiments.model import Experiment
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.terminal import console

app = App()


@app.command("list")
def list_all() -> None:
    """List experiments, topologies, and every kind of flow."""

    def section(title: str, rows: dict[str, str]) -> None:
        console.print(f"{title}", style="bold", highlight=False)
        width = max(map(len, rows))
        for name, text in rows.items():
            console.print(f"  {name:{width}}  {text}", highlight=False, markup=False, soft_wrap=True)

    section("Experiments (fairlane run ID)", {name: _described(loader.load(loader.find(name))) for name in loader.names()})
    section("\nTopologies (fairlane run TOPOLOGY --flow KIND:COUNT ...)", ad_hoc_networks.TOPOLOGIES)
    section("\nRate-adaptation algorithms (flow kinds)", {name: kinds.summary(name) for name in sorted(ALGORITHMS)})
    section("\nTCP (flow kinds)", {name: kinds.summary(name) for name in kinds.TCP_KINDS})
    section("\nPlain sources (flow kinds)", {name: kinds.summary(name) for name in kinds.SOURCE_KINDS})


def _described(experiment: Experiment) -> str:
    paper = experiment.settings.paper
    where = f"{paper.reference} {paper.section}, {paper.figure}; " if paper else ""
    return f"{experiment.settings.title} ({where}{experiment.duration_s:g} s)"
