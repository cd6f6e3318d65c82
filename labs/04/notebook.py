# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 4: ALS: write the fair rate into RTCP
#
# A switch tells senders, in their own control packets, how much each of them may send. You write the P4 that does it, in `fair_rate.p4` beside
# this notebook; the [lab's page](README.md) has the theory. What runs here is your file as it is at that moment.

# %%
import fairlane
from fairlane.labs.notebook import Lab, beside

lab = Lab("04")

# %% [markdown]
# ## Predict
#
# Answer before you run anything: double-click this cell and write below each question.
#
# 1. Five senders share a link of 2 Mb/s. What rate will each have? How long after its start does a sender know?
#
# 2. What happens to the link when a switch forgets to lower `R_d`?
#
# 3. Two switches on a path have fair rates of 600 and 900 kb/s. What must the receiver see, in either order?

# %% [markdown]
# ## Run


# %%
def experiment(senders: int = 5, bottleneck_mbit: float = 2, rtt_ms: int = 20, queue: str = "red", seed: int = 1) -> fairlane.Result:
    """Some ALS senders over one link, through your program."""
    return fairlane.run(
        "dumbbell",
        [f"als:{senders}"],
        bottleneck=f"{bottleneck_mbit}mbit",
        rtt=f"{rtt_ms}ms",
        queue=queue,
        duration_s=40,
        seed=seed,
        programs=[lab / "fair_rate.p4"],
    )


result = experiment()
result.kinds

# %% [markdown]
# ## Plot
#
# The dotted line is the fair share, `b / n`.

# %%
result.plot()

# %%
result.plot("fair_rate")

# %% [markdown]
# Another number of senders, another link. Move a slider, then press the button:

# %%
lab.controls(experiment, senders=(1, 12), bottleneck_mbit=(0.5, 8, 0.5), rtt_ms=(10, 200, 10), queue=["red", "droptail"], seed=(1, 5))

# %% [markdown]
# Fairlane's own program beside yours. When both are right, they are the same to the last digit:

# %%
reference = fairlane.run("dumbbell", ["als:5"], bottleneck="2mbit", rtt="20ms", queue="red", duration_s=40)
beside(yours=result, reference=reference)

# %% [markdown]
# ## Explain
#
# 1. Compare with your predictions.
#
# 2. Why does the rate of each sender stay below `R_f` between reports? (section 3.3, AIR)
#
# 3. Why does the paper take `>=` and not `>`?

# %% [markdown]
# ## Check

# %%
lab.check()
