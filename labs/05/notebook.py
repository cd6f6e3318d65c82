# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 5: The control plane: count connections, exactly and by sketch
#
# `R_f = b U_l / n` needs one number that no switch has by itself: how many connections there are. You count them exactly and by sketch, in `counting.py` and
# `connection_sketch.p4` beside this notebook; the [lab's page](README.md) has the theory.

# %%
import importlib
import runpy
import tempfile
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd

import fairlane
from fairlane.labs.notebook import Lab

lab = Lab("05")
control = importlib.import_module("fairlane.labs.05.control")

# %% [markdown]
# ## Predict
#
# Write your answers here.
#
# 1. 1000 connections send through a port, ten packets each in every second. How many digests does exact counting take in a second, at the least? And how many bytes
#    does the controller read with the sketch?
#
# 2. Of 1024 slots, 1024 connections hit how many? What does the estimate say then, and by how much is it off?
#
# 3. A controller counts one connection too many, 6 instead of 5. What does that cost whom? And one too few?

# %% [markdown]
# ## Run
#
# `joins.toml` with your code as its control plane: four ALS flows join, two others come and go.


# %%
def experiment(counter: str = "exact") -> fairlane.Result:
    """The run, with one of your ways of counting."""
    counting = SimpleNamespace(**runpy.run_path(str(lab / "counting.py")))
    with tempfile.TemporaryDirectory() as scratch:
        return control.run(counting, counter, lab / "connection_sketch.p4", Path(scratch))


exact, sketch = experiment("exact"), experiment("sketch")
pd.DataFrame({name: run.checks.set_index("name")["value"] for name, run in (("exact", exact), ("sketch", sketch))})

# %% [markdown]
# ## Plot
#
# n of the bottleneck in each second, as both have it:

# %%
figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
for name, run, style in (("exact", exact, "-"), ("sketch", sketch, "--")):
    seen = run.fair_rates[(run.fair_rates["link"] == "s1->s2") & (run.fair_rates["time_s"] >= 0)]
    axes.step(seen["time_s"], seen["connections"], style, where="post", label=name)
axes.set(xlabel="time (s)", ylabel="n of s1->s2")
axes.legend()
plt.close(figure)
figure


# %% [markdown]
# The estimate's error beside the one that equation 5 states, for 1 to 10,000 connections. Move the slider for other numbers of slots:


# %%
def errors(slots: int = 1024) -> pd.DataFrame:
    """In percent, of connections that hit slots by chance."""
    counting = SimpleNamespace(**runpy.run_path(str(lab / "counting.py")))
    rows = control.errors(counting, slots)
    return (
        pd.DataFrame([(n, 100 * off, 100 * stated) for n, off, stated in rows], columns=["connections", "error, %", "standard error, %"])
        .set_index("connections")
        .round(2)
    )


table = errors()
lab.sliders(errors, slots=[256, 512, 1024, 4096, 16384])

# %%
lab.controls(experiment, counter=["exact", "sketch"])

# %% [markdown]
# ## Explain
#
# 1. n rises and falls later than the flows do. By how much, at most, and what happens at a full link in that time?
#
# 2. How many of the errors should lie outside of three standard errors? From where on is the sketch useless, and why?
#
# 3. Why does the epoch take part in the mix, and not only stand in the slot? Think of two connections that share a slot for an hour.
#
# 4. Why two cells for each port, one for even and one for odd epochs, when one cell could be read and subtracted?
#
# 5. `p4src/connection_sketch.p4` mixes addresses by multiplications instead of a CRC. What would a CRC do to addresses that follow each other
#    (`docs/decisions/linear-counting.md`)?
#
# 6. Somebody wants more than his share. What can he do to n? Which of the two ways of counting lets him do it?

# %% [markdown]
# ## Check

# %%
lab.check()
