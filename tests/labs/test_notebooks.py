"""The labs' notebooks: every cell of each runs on the lab's solution, and leaves the same behind each time; one of them in a real kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.labs.grading import labs

NUMBERS = labs.numbers()

# A P4 program and an algorithm; the others would double the time for the same runs. FAIRLANE_NOTEBOOKS_TWICE=1 runs all of them twice.
TWICE = NUMBERS if os.environ.get("FAIRLANE_NOTEBOOKS_TWICE") else [n for n in NUMBERS if n in ("04", "06")]

pytestmark = [
    pytest.mark.skipif(not find_spec("jupytext"), reason="no Jupyter in .venv: make notebooks, or make test, installs it"),
    pytest.mark.timeout(900),
]  # a minute alone; the machine may be busy


def run(*arguments: object) -> str:
    with tempfile.TemporaryDirectory() as nobodys:  # not the settings of whoever runs the tests
        environment = os.environ | {"PYTHONPATH": str(probes.ROOT), "IPYTHONDIR": nobodys, "MPLBACKEND": "Agg"}
        done = subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=probes.ROOT, env=environment, text=True, capture_output=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_lab_has_a_notebook() -> None:
    assert NUMBERS
    for number in NUMBERS:
        text = (probes.ROOT / "labs" / number / "notebook.py").read_text(encoding="utf-8")
        title = labs.load(number).settings.title
        assert f"# # Lab {int(number)}: {title}\n" in text, number
        for part in ("Predict", "Run", "Plot", "Explain", "Check"):
            assert f"# ## {part}\n" in text, f"labs/{number}/notebook.py: {part}"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict]]:
    """What each notebook gave, of some twice. All in one go, since starting Python takes longer than a notebook."""
    sources = {
        number: f"{probes.ROOT / 'labs' / number / 'notebook.py'}={labs.solution(labs.load(number), tmp_path_factory.mktemp(number))}"
        for number in NUMBERS
    }
    wrong = tmp_path_factory.mktemp("wrong") / "notebook.py"
    wrong.write_text("# %%\nx = 1\n\n# %%\nx / 0\n")
    sources["wrong"] = f"{wrong}={wrong.parent}"
    asked = [*sources, *TWICE]
    given: dict[str, list[dict]] = {name: [] for name in sources}
    for name, line in zip(asked, run("-m", "tools.notebooks.execute", *(sources[name] for name in asked)).splitlines(), strict=True):
        given[name].append(json.loads(line))
    return given


@pytest.mark.parametrize("number", NUMBERS)
def test_a_notebook_runs(number: str, answers: dict[str, list[dict]]) -> None:
    first = answers[number][0]
    assert first["failed"] is None, first["failed"]
    assert first["cells"] >= 4


@pytest.mark.parametrize("number", TWICE)
def test_a_notebook_gives_the_same_again(number: str, answers: dict[str, list[dict]]) -> None:
    first, second = answers[number]
    assert first == second


def test_a_cell_that_fails_is_told(answers: dict[str, list[dict]]) -> None:
    (answer,) = answers["wrong"]
    assert "code cell 2:\nx / 0" in answer["failed"] and "ZeroDivisionError" in answer["failed"]


@pytest.mark.long
def test_a_notebook_runs_in_a_kernel(tmp_path: Path) -> None:
    """Written as `make notebooks` writes it, and run by Jupyter's own client: tables, plots and controls arrive."""
    target = tmp_path / "lab.ipynb"
    answer = labs.solution(labs.load("04"), tmp_path / "answer")
    out = run(
        "-c",
        f"""
import os, jupytext, nbformat
from nbclient import NotebookClient
from tools.notebooks.__main__ import write
write(__import__('pathlib').Path('labs/04/notebook.py'), __import__('pathlib').Path({str(target)!r}))
os.environ['FAIRLANE_LAB_ANSWER'] = {str(answer)!r}
notebook = nbformat.read({str(target)!r}, 4)
notebook.cells = [cell for cell in notebook.cells if 'fair_rate")' not in cell.source and 'reference' not in cell.source]
notebook.cells += [nbformat.v4.new_code_cell("pressed = lab.controls(experiment, senders=(2, 3)); pressed.update()"),
                   nbformat.v4.new_code_cell("print([sorted(o['data']) for o in pressed.out.outputs])")]
NotebookClient(notebook, timeout=100, resources={{'metadata': {{'path': 'labs/04'}}}}).execute()
print(notebook.cells[-1].outputs[0].text)
for cell in notebook.cells:
    for output in cell.get('outputs', ()):
        print(*sorted(output.get('data', ())))
""",
    )
    shown = out.splitlines()
    assert shown[0] == "[['text/html', 'text/plain'], ['image/png', 'text/plain']]", "what the run button shows"
    assert "text/html text/plain" in shown, "tables"
    assert "image/png text/plain" in shown, "a plot"
    assert sum("widget-view" in line for line in shown) == 2, "controls and the check button"
