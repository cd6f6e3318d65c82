"""`fairlane new lab`: a lab that can be graded at once, with one function to write, as a starting point for a lab of your own."""

from __future__ import annotations

import re
from pathlib import Path

from fairlane.errors import Refusal
from fairlane.labs import skeletons

_PAGE = """\
# Lab {n}: {title}

45 minutes. Files: `answer.py`. Needs no root.

## Aim

What a student can do afterwards, in one sentence.

## Theory

Jain's index of rates x_1 to x_n is (sum x)^2 / (n sum x^2).

## Predict

1. What is the index of two flows, one of which has everything?

## Run

Fill in the TODO of `answer.py`, then

```sh
fairlane labs check {number}
```

## Plot

```sh
fairlane run dumbbell --flow tcp-reno:2 --duration 10
```

## Explain

1. Compare with your prediction.
"""
_TOML = """\
title = {title}
files = ["answer.py"]
minutes = 45
"""
_GRADE = '''\
"""Lab {n}: the function by numbers."""

from __future__ import annotations

from fairlane.labs.grading import Answer, algorithms, check
from fairlane.labs.grading.answer import close


@check(2, "Jain's index")
def index(answer: Answer) -> None:
    f = algorithms.function(answer, "answer.py", "jain_index")
    for rates in ([1.0, 1.0, 1.0], [4.0, 0.0], [1.0, 3.0]):
        close(f(rates), sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates)), f"jain_index({{rates}})", "where is the square: of the sum, or of each?")


CHECKS = [index]
'''
_SOLUTION = '''\
"""Lab {n}: {title}."""


def jain_index(rates: list[float]) -> float:
    """From 1/n, where one has everything, to 1, where all have the same."""
    # BEGIN SOLUTION
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
    # SKELETON
    # return 0.0  # TODO 1
    # END SOLUTION
'''
_WRONG = """\
[[wrong]]
name = "the square of the sum is missing"
file = "answer.py"
find = "sum(rates) ** 2 /"
replace = "sum(rates) /"
hint = "where is the square"
"""
_NOTEBOOK = """\
# %% [markdown]
# # Lab {n}: {title}
#
# You fill in `answer.py` beside this notebook; the [lab's page](README.md) has the theory.

# %%
from fairlane.labs.notebook import Lab

lab = Lab("{number}")

# %% [markdown]
# ## Predict
#
# 1. What is the index of two flows, one of which has everything?

# %% [markdown]
# ## Run

# %%
print((lab / "answer.py").read_text())

# %% [markdown]
# ## Plot

# %% [markdown]
# ## Explain
#
# 1. Compare with your prediction.

# %% [markdown]
# ## Check

# %%
lab.check()
"""


def begin(number: str, title: str) -> list[Path]:
    """Write a lab into a checkout, its skeleton too; the files. Refusal: no checkout, no number, or there is such a lab."""
    if not skeletons.TEACHING.is_dir():
        raise Refusal("a lab of your own needs a checkout of Fairlane: an installed package has no folder for solutions")
    if not re.fullmatch(r"\d\d", number):
        raise Refusal(f"{number}: write the lab's number with two digits, such as 11")
    if not title.strip() or "\n" in title:
        raise Refusal("a lab has a title, in one line")
    lab, teaching = skeletons.FOLDER / number, skeletons.TEACHING / number
    for folder in (lab, teaching):
        if folder.exists():
            raise Refusal(f"{folder}: exists already, and is not overwritten")
    values = {"n": int(number), "number": number, "title": title}
    quoted = '"' + title.replace("\\", "\\\\").replace('"', '\\"') + '"'
    texts = {
        lab / "README.md": _PAGE.format(**values),
        lab / "lab.toml": _TOML.format(title=quoted),
        lab / "grade.py": _GRADE.format(**values),
        lab / "notebook.py": _NOTEBOOK.format(**values),
        lab / "Makefile": "include ../lab.mk\n",
        teaching / "solution" / "answer.py": _SOLUTION.format(**values),
        teaching / "wrong.toml": _WRONG,
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    skeleton = lab / "answer.py"
    skeleton.write_text(skeletons.read(teaching / "solution" / "answer.py").skeleton, encoding="utf-8", newline="\n")
    return [*texts, skeleton]
