# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 9: Reproduce a figure and explain where it deviates
#
# A figure of a paper does not come out. You measure by how much (`figure.py`), find a cause in the paper's own equations, test it, and write what you find into
# `findings.toml`; the [lab's page](README.md) has the theory.

# %%
import importlib
import runpy
import tempfile

import pandas as pd

import fairlane
from fairlane.labs.notebook import Lab, picture

lab = Lab("09")
runs = importlib.import_module("fairlane.labs.09.runs")

# %% [markdown]
# ## Predict
#
# Write your answers here.
#
# 1. Read the paper's two CoVs. By what factor is SSVP-ADP the smoother?
#
# 2. A rate that climbs evenly from `beta` to 1 and falls back: what is its CoV? For 0.5, for 0.875?
#
# 3. What does equation 17 give for 4 packets, and what does that and your sawtooth let expect of the factor? Now you know that something is wrong: with
#    what?

# %% [markdown]
# ## Run
#
# Both schemes at the paper's buffer of 4 packets, by your `figure.py`. A run takes some seconds the first time, and is kept. Add other buffers: 1, 2, 3, 8.


# %%
def compare(buffers: tuple[int, ...] = (4,), seed: int = 1) -> pd.DataFrame:
    """How smooth both are, and what equation 17 says of SSVP-ADP."""
    mine = runpy.run_path(str(lab / "figure.py"))
    rows = []
    for buffer_packets in buffers:
        fixed, adaptive = (mine["smoothness"](runs.rates(kind, buffer_packets, seed)) for kind in runs.KINDS)
        rows.append(
            (
                buffer_packets,
                mine["beta"](buffer_packets, runs.PRODUCT_PACKETS),
                fixed,
                adaptive,
                adaptive / fixed if fixed else float("nan"),
            )
        )
    return (
        pd.DataFrame(rows, columns=["buffer", "beta of equation 17", "CoV of SSVP", "CoV of SSVP-ADP", "ratio"])
        .set_index("buffer")
        .round(4)
    )


table = compare()
table

# %% [markdown]
# ## Plot
#
# Figure 3 as it comes out here; put it beside the paper's:

# %%
with tempfile.TemporaryDirectory() as folder:
    runs.plot(f"{folder}/figure-3.png")
    shown = picture(f"{folder}/figure-3.png")
shown


# %% [markdown]
# One run as any other, with all its tables:


# %%
def experiment(kind: str = "ssvp-adp", variant: str = "base", seed: int = 1) -> fairlane.Result:
    """A point of the row ssvp-3b."""
    return fairlane.run("ssvp-3b", at=[f"kind={kind}", f"variant={variant}"], seed=seed, duration_s=30)


lab.controls(experiment, kind=list(runs.KINDS), variant=list(runs.BUFFERS.values()), seed=(1, 5))

# %% [markdown]
# ## Explain
#
# 1. State the deviation in one sentence, with numbers: of which measure, on which network, against what in the paper.
#
# 2. Your sawtooths give a ratio of about 3, the runs less than 2. What do flows do that a sawtooth does not?
#
# 3. At a buffer of 2 packets the betas are 0.8 and 0.875. Run seeds 2 and 3 (`compare((2,), seed=2)`). What would you write about that buffer?
#
# 4. The sum of the flows, too, is said to vary less with SSVP-ADP. Does it here? Measure it.
#
# 5. What would have to be true in the paper's simulation for its 0.67? Work out the `beta` that it needs, and from equation 20 the queue. Which
#    sentence of the paper would you ask its authors about? `ssvp-3c` gives such a `beta` by a window of RTT_min: run it, and say what the window counts
#    that the paper's RTT_min does not.
#
# 6. `docs/experiments/ssvp-3.md` lists what else was tried. Which of these would you have tried first, and what would have convinced you that the fault is ours?

# %% [markdown]
# ## Check

# %%
lab.check()
