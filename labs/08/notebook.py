# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 8: Layered multicast
#
# One sender, three receivers, three paths of different rates: nobody is to get less than its path allows, and nobody is to find that out by losing packets. You write
# what the sender puts on each layer, what it announces, and what a receiver joins, in `my_layers.py`; the [lab's page](README.md) has the theory.

# %%
import tempfile

import fairlane
from fairlane.labs.notebook import Lab, picture

lab = Lab("08")

# %% [markdown]
# ## Predict
#
# The network is `tree.toml`, drawn on the lab's page; four constant streams cross each of its three links. Write your answers here.
#
# 1. Each layer counts as a connection on the links that it crosses, and `R_f = 0.9 b / n`. Work out `R_d` of the three receivers once all have the layers
#    that they should have: 1, 3 and 2.
#
# 2. So what are the sizes of the layers, and does each receiver's `R_d` agree with the layers that you assumed?
#
# 3. Before receiver 0 comes, receiver 2 is the worst. What is sent on the basic layer then? Who notices when receiver 0 joins?

# %% [markdown]
# ## Run


# %%
def experiment(duration_s: int = 80, seed: int = 1, out: str | None = None) -> fairlane.Result:
    """Your layers on the tree."""
    return fairlane.run(lab / "tree.toml", duration_s=duration_s, seed=seed, algorithms=[lab / "my_layers.py"], out=out)


with tempfile.TemporaryDirectory() as folder:
    result = experiment(out=f"{folder}/run")
    layers = picture(f"{folder}/run/layers.png")
result.kinds

# %% [markdown]
# ## Plot
#
# Rates of the layers, what each receiver gets, and how many layers it has:

# %%
layers

# %%
result.plot()

# %%
lab.controls(experiment, duration_s=(50, 200, 10), seed=(1, 5))

# %% [markdown]
# ## Explain
#
# 1. Compare with your predictions. After what time have receivers 0 and 2 their final layers, and what is the time spent on? (reports,
#    adaptation points, control packets, IGMP)
#
# 2. What is sent lies above what is announced. Why, and what would become of receiver 2 if the sender announced what it sends? Try it: announce the
#    `r_i` in place of the `R_d,i`.
#
# 3. A receiver's own joins raise `n` on its last link, and so lower its `R_d`. On `r1 === r2`, work out `R_d` with one, two and three layers. For which
#    sizes would receiver 2 join and leave for ever?
#
# 4. The constant streams do not listen. Replace `kind = "cbr"` by `kind = "als"` in a copy of `tree.toml`, and take out `parameters`. What do they
#    get, and what does the video?
#
# 5. The paper's own network is `fairlane.run("als-8")`, with nine TCP flows on each link (`docs/experiments/als-8.md`). Which of its numbers can you
#    now derive by hand, and which does the paper get wrong?

# %% [markdown]
# ## Check

# %%
lab.check()
