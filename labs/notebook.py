"""What the labs' notebooks have in common: the student's files, controls, a button that grades.

from fairlane.labs.notebook import Lab
lab = Lab("04")
lab / "fair_rate.p4"                      # the file that the student works on
lab.controls(experiment, senders=(1, 10)) # sliders and a button; the function gives a Result
lab.check()                               # a button: points and hints
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from fairlane import probes, user_files
from fairlane.api import Result

# Tests set it to the folder of a solution.
ANSWER_VARIABLE = "FAIRLANE_LAB_ANSWER"


class Lab:
    """The lab of a number such as "04". answer: the folder of the student's files, which is the notebook's own, or in tests another."""

    def __init__(self, number: str) -> None:
        self.number = number
        self.folder = probes.PACKAGE.joinpath("labs", number).resolve()
        self.answer = Path(os.environ.get(ANSWER_VARIABLE, "")).resolve()
        _show_figures()

    def __truediv__(self, name: str) -> Path:
        """A file of the lab: the student's own where it is one to fill in."""
        return self.answer / name if (self.answer / name).exists() else self.folder / name

    def fairlane(self, *arguments: object) -> None:
        """Run a command of Fairlane in this lab's folder and show its output, also when it fails."""
        self._show([sys.executable, "-m", "fairlane", *map(str, arguments)])

    def python(self, *arguments: object) -> None:
        """The same with a Python file."""
        self._show([sys.executable, *map(str, arguments)])

    def _show(self, command: list[str]) -> None:
        done = subprocess.run(
            command, cwd=self.folder, text=True, capture_output=True, check=False, env=os.environ | {"PYTHONPATH": str(probes.ROOT)}
        )
        print(done.stdout + done.stderr, end="")

    def controls(self, experiment: Callable[..., Result], **parameters: Any) -> Any:
        """A slider or menu for each parameter of a function that runs something, as ipywidgets' `interact` makes them, and a button that
        runs it: its table and its rates appear below."""
        import ipywidgets
        from IPython.display import display

        def run(**chosen: Any) -> None:
            result = experiment(**chosen)
            display(result.kinds, result.plot())

        return ipywidgets.interactive(run, {"manual": True, "manual_name": "run"}, **parameters)

    def sliders(self, show: Callable[..., Any], **parameters: Any) -> Any:
        """The same for a quick function: shows its result again at each move."""
        import ipywidgets

        return ipywidgets.interactive(show, **parameters)

    def use(self, path: Path) -> None:
        """Make the flow kinds of a Python file known, as the file is now."""
        user_files.use_algorithm(path)

    def check(self) -> Any:
        """A button that grades the files, as `fairlane labs check NN` does."""
        import ipywidgets

        button, output = ipywidgets.Button(description=f"check lab {int(self.number)}"), ipywidgets.Output()

        def grade(_: object) -> None:
            output.clear_output()
            with output:
                self.python("-m", "fairlane.labs.grading", self.number, "--answer", self.answer)

        button.on_click(grade)
        return ipywidgets.VBox([button, output])


def _show_figures() -> None:
    """Have notebooks show a figure that is a cell's last value, also where nothing has imported pyplot."""
    from IPython import get_ipython
    from IPython.core import pylabtools

    shell = get_ipython()
    if shell is not None:
        pylabtools.select_figure_formats(shell, {"png"})


def picture(path: str | Path) -> Any:
    """A picture of a file, where there is one."""
    from IPython.display import Image

    return Image(filename=str(path)) if Path(path).is_file() else None


def beside(**results: Result) -> pd.DataFrame:
    """Runs side by side: of each, goodput and loss of its kinds of flow, and the bottleneck."""
    rows = []
    for name, result in results.items():
        link = result.bottleneck
        for kind, row in result.kinds.iterrows():
            rows.append(
                {
                    "run": name,
                    "kind": kind,
                    "flows": row["flows"],
                    "goodput, Mb/s": row["mean_goodput_bps"] / 1e6,
                    "loss, %": 100 * row["mean_loss_fraction"],
                    "Jain's index": row["jain_index"],
                    "utilisation": link["utilisation"],
                    "mean queue": link["mean_queue_packets"],
                }
            )
    return pd.DataFrame(rows).set_index(["run", "kind"]).round(3)
