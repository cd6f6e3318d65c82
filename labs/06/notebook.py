# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 6: RAP from its equations
#
# A sender without a window: it spaces its packets by a gap, and changes the gap by what it hears of losses. You write it in `my_rap.py` beside this
# notebook; the [lab's page](README.md) has the theory.

# %%
import fairlane
from fairlane.labs.notebook import Lab, beside

lab = Lab("06")

# %% [markdown]
# ## Predict
#
# Write your answers here.
#
# 1. A flow sends 1 packet in each round trip of 64 ms. After how many seconds without loss will it have 2 Mb/s, with packets of 1000 bytes?
#
# 2. Work equation 1 into packets in a round trip, `SRTT / IPG`. What does a step do to that number? What does TCP do to its window?
#
# 3. Two flows of 64 and 128 ms share a link. Which gets more, and by what power of the ratio (equation 5)?
#
# 4. A queue overflows and drops ten packets of one round trip. What would become of the rate without (6)?

# %% [markdown]
# ## Run
#
# Two of your flows beside two of `hosts/algorithms/rap.py`:


# %%
def experiment(
    mine: int = 2, others: int = 2, kind: str = "rap", bottleneck_mbit: float = 2, rtt_ms: int = 64, queue: str = "red", seed: int = 1
) -> fairlane.Result:
    """Some of your flows, and some of another kind, over one link."""
    flows = [f"my-rap:{mine}"] + ([f"{kind}:{others}"] if others else [])
    return fairlane.run(
        "dumbbell",
        flows,
        bottleneck=f"{bottleneck_mbit}mbit",
        rtt=f"{rtt_ms}ms",
        queue=queue,
        buffer="60",
        start_jitter="1s",
        duration_s=40,
        seed=seed,
        algorithms=[lab / "my_rap.py"],
    )


rap, tcp = experiment(), experiment(kind="tcp-sack")
beside(rap=rap, tcp=tcp)

# %% [markdown]
# ## Plot

# %%
rap.plot()

# %%
tcp.plot()

# %% [markdown]
# A long round trip makes the steps long enough to see one by one:

# %%
alone = experiment(mine=1, others=0, bottleneck_mbit=1, rtt_ms=400, queue="droptail")
alone.plot()

# %% [markdown]
# Other flows, another link: move a slider, then press the button.

# %%
lab.controls(
    experiment,
    mine=(1, 6),
    others=(0, 6),
    kind=["rap", "tcp-sack", "tcp-reno", "gaimd", "tfrc"],
    bottleneck_mbit=(1, 10),
    rtt_ms=(20, 400, 20),
    queue=["red", "droptail"],
    seed=(1, 5),
)

# %% [markdown]
# ## Explain
#
# 1. One flow alone: how long does it climb, and to how many packets in a round trip? Compare with your first prediction. What does the
#    filling queue do to the steps?
#
# 2. Beside your flows, is `rap` better or worse? Which of its parameters (`docs/algorithms/rap.md`) does yours not have?
#
# 3. Give TCP the same link. Who has more? The paper says RAP is friendly where TCP's window is large enough to recover from losses without a
#    timeout; check the windows here: `2 Mb/s x 64 ms / 4 / 1000 bytes`.
#
# 4. Take the cluster rule out, and run again. Do your predictions of 4 hold?
#
# 5. Choose drop-tail. Do the flows halve together or by turns, and why?

# %% [markdown]
# ## Check

# %%
lab.check()
