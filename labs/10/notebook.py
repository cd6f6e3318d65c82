# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 10: Your own scheme against all others
#
# You design a rate-adaptation scheme in `my_scheme.py`, say beforehand what it is good for, and put it into one ranking with every scheme of the five
# papers and with TCP. The [lab's page](README.md) says how marks are given.

# %%
import pandas as pd

from fairlane.labs.notebook import Lab
from fairlane.labs.ranking import page
from fairlane.labs.ranking.measures import EVEN, MARKS, measure, situations, stored

lab = Lab("10")

# %% [markdown]
# ## Predict
#
# Write your answers here.
#
# 1. Which of the six marks work against each other? Which two can nobody have together, without help from the routers?
#
# 2. A scheme that never sends: what marks does it get? One that always sends 2 Mb/s?
#
# 3. Name the scheme of the papers that you expect first with all weights alike, and the one with only `friendliness`.
#
# 4. For your scheme: what does it hear, what does it do with it, how long is its memory? Which marks will be its best and worst?

# %% [markdown]
# ## Run
#
# *Alone*: three flows and a fourth that joins 20 s later. *Beside*: two flows and two of TCP SACK.

# %%
lab.use(lab / "my_scheme.py")
alone, beside_tcp = situations("my-scheme")
measured = {**stored(), "my-scheme": measure("my-scheme", alone, beside_tcp)}
ranking = page.table(page.ranked(measured, "my-scheme", EVEN))
ranking

# %% [markdown]
# ## Plot

# %%
alone.plot()

# %%
beside_tcp.plot()


# %% [markdown]
# Other weights, another order:


# %%
def weighted(**weights: float) -> pd.DataFrame:
    """The ranking with other weights of the marks."""
    return page.table(page.ranked(measured, "my-scheme", weights))


lab.sliders(weighted, **dict.fromkeys(MARKS, (0.0, 5.0, 0.5)))

# %% [markdown]
# ## Explain
#
# 1. Compare the report with your predictions. Which mark surprised you, and which line of your file makes it?
#
# 2. Find weights that put your scheme first, and describe the application for which they are right. Find weights that make constant bit rate win.
#
# 3. Run two more seeds (`situations("my-scheme", seed=2)`). By how much does a score move from seed to seed, and which ranks does that leave open?
#
# 4. The ranking is of one link. Change one thing (the round trip, the rate, drop-tail, ten flows) with `fairlane.run`, and name a scheme whose place
#    would change. Why?
#
# 5. ALS has help that the others do not have. What would it score if one of the two switches were an ordinary one?

# %% [markdown]
# ## Check

# %%
lab.check()
