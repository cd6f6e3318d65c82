# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 7: Max-min fairness on the chain
#
# Routers that know nothing but how many connections they have, and senders that know nothing but one rate and one load, reach shares which nobody
# calculated. You calculate those shares in `max_min.py`, and write the sender in `my_als.py`; the [lab's page](README.md) has the theory.

# %%
import runpy

import pandas as pd

import fairlane
from fairlane.labs.notebook import Lab

lab = Lab("07")

# %% [markdown]
# ## Predict
#
# The chain of section 4.2: four links L1 to L4 of 1 Mb/s in a row. C0 crosses all, C1 L1 and L2, C2 L1, C3 L2, C4 L2 and L3, C5 L3, C6 L4.
# Write your answers here.
#
# 1. What is the max-min share of each, by hand? And `R_f` (90% of 1 Mb/s) for each?
#
# 2. Which connections need AIR, which do not? For which is the way longest?
#
# 3. C6 shares L4 with C0 alone. U of L4 is 0.7 at first: after how many reports has AIR, from 5 kb/s, doubled? When is it 250 kb/s?

# %% [markdown]
# ## Run
#
# Your calculation of the shares:

# %%
mine = runpy.run_path(str(lab / "max_min.py"))
shares = pd.Series(mine["shares"](mine["CHAIN_LINKS"], mine["CHAIN_PATHS"])) / 1e3
shares.to_frame("share, kb/s")


# %% [markdown]
# Your senders on that chain. The run takes some seconds: it is 200 s of virtual time.


# %%
def experiment(duration_s: int = 200, seed: int = 1) -> fairlane.Result:
    """Seven of your senders on the chain."""
    return fairlane.run(lab / "chain.toml", duration_s=duration_s, seed=seed, algorithms=[lab / "my_als.py"])


result = experiment()
reached = result.per_flow["goodput_bps"] / 1e3
table = pd.DataFrame({"share, kb/s": shares.to_numpy(), "reached, kb/s": reached.to_numpy().round(1)}, index=shares.index)
table

# %% [markdown]
# ## Plot

# %%
result.plot()

# %%
lab.controls(experiment, duration_s=(40, 400, 20), seed=(1, 5))

# %% [markdown]
# ## Explain
#
# 1. Compare with question 1, and with table 1 of the paper. Which arrives first, which last, and why? The paper says less than 100 s
#    (`docs/experiments/als-t1.md` says what we found).
#
# 2. Start with an AIR of 40 kb/s: add a table `[my-als]` with `initial_air_bps = 40_000.0` to a copy of `chain.toml`. What is won, and what is lost?
#
# 3. L2 is dealt out first, and its four connections get 250 kb/s each, although they all ask for more than `R_f` = 225 kb/s with AIR. What keeps
#    them there? Look at `result.links`.
#
# 4. A connection ends. How long until the others have its share? Which of the two, router or sender, takes the time?

# %% [markdown]
# ## Check

# %%
lab.check()
