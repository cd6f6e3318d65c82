# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 3: RED in P4
#
# You write random early detection for a switch whose language has no fractions, no signs, no division, in `red.p4` beside this notebook; the
# [lab's page](README.md) has the theory.

# %%
import fairlane
from fairlane.labs.notebook import Lab, beside

lab = Lab("03")

# %% [markdown]
# ## Predict
#
# Four TCP flows share 4 Mb/s; the buffer is 60 packets, `min` 15, `max` 45, `w` 0.002. Write your answers here.
#
# 1. What will the mean queue be with drop-tail? With RED?
#
# 2. A burst finds 50 packets waiting while the average is 4. What does RED do with it, and why is that right for TCP?
#
# 3. With `p_b` = 0.1: after how many packets, at the latest, comes the next drop? And if `count` were always 0?

# %% [markdown]
# ## Run


# %%
def experiment(
    flows: int = 4, bottleneck_mbit: float = 4, rtt_ms: int = 60, buffer_packets: int = 60, queue: str = "red", seed: int = 1
) -> fairlane.Result:
    """Some TCP Reno flows over one link with your RED."""
    return fairlane.run(
        "dumbbell",
        [f"tcp-reno:{flows}"],
        bottleneck=f"{bottleneck_mbit}mbit",
        rtt=f"{rtt_ms}ms",
        buffer=str(buffer_packets),
        queue=queue,
        duration_s=30,
        seed=seed,
        programs=[lab / "red.p4"],
    )


red, droptail = experiment(), experiment(queue="droptail")
beside(red=red, droptail=droptail)

# %% [markdown]
# ## Plot
#
# The queue with RED, and with drop-tail:

# %%
red.plot("queue")

# %%
droptail.plot("queue")

# %%
red.plot()

# %% [markdown]
# Another load, another buffer: move a slider, then press the button.

# %%
lab.controls(
    experiment,
    flows=(1, 20),
    bottleneck_mbit=(1, 10),
    rtt_ms=(10, 200, 10),
    buffer_packets=(10, 200, 10),
    queue=["red", "droptail"],
    seed=(1, 5),
)

# %% [markdown]
# ## Explain
#
# 1. Compare mean queue, loss and utilisation. What does RED pay for its short queue?
#
# 2. Why does the average sometimes stay above `max` while the queue is almost empty? Which `w` helps, and what does that spoil?
#
# 3. Rewrite `R < p_b / (1 - count p_b)` as you have it in P4. Is it the same for every `R`? Where does your arithmetic round?
#
# 4. What would happen on a long idle link without the decay that is given (`NegativeExponential`)?

# %% [markdown]
# ## Check

# %%
lab.check()
