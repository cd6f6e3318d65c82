# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 2: Why drop-tail and greedy UDP starve TCP
#
# One sender that does not listen takes a link away from all who do. You measure how much (`measure.py`), find out why no queue helps against it, and teach it to
# listen (`polite.py`); the [lab's page](README.md) has the theory.

# %%
import runpy

import pandas as pd

import fairlane
from fairlane.labs.notebook import Lab, beside

lab = Lab("02")

# %% [markdown]
# ## Predict
#
# Two TCP flows and one constant rate of 1.8 Mb/s share 2 Mb/s, 60 ms, drop-tail with 15 packets. Write your answers here.
#
# 1. What does each get? Whose packets are lost: in numbers, and as a part of what it sends?
#
# 2. What if the queue is twice as long? What if it is RED?
#
# 3. By equation 1: how much does TCP have with 60 ms, packets of 1000 bytes and 1% loss? With 4% loss, which of the two terms is larger?

# %% [markdown]
# ## Run


# %%
def experiment(
    other: str = "cbr", constant_mbit: float = 1.8, rtt_ms: int = 60, buffer_packets: int = 15, queue: str = "droptail", seed: int = 1
) -> fairlane.Result:
    """Two TCP flows and one of another kind; constant_mbit matters to cbr alone."""
    return fairlane.run(
        "dumbbell",
        ["tcp-reno:2", f"{other}:1"],
        bottleneck="2mbit",
        rtt=f"{rtt_ms}ms",
        buffer=str(buffer_packets),
        queue=queue,
        duration_s=40,
        seed=seed,
        settings=[f"cbr.rate_bps={constant_mbit * 1e6}"] if other == "cbr" else [],
        algorithms=[lab / "polite.py"] if other == "polite" else [],
    )


greedy, longer, red = experiment(), experiment(buffer_packets=30), experiment(queue="red")
beside(droptail=greedy, longer=longer, red=red)


# %% [markdown]
# The same by your `measure.py`:


# %%
def measured(result: fairlane.Result) -> pd.Series:
    """Jain's index, each kind's part of the goodput, and how long packets wait."""
    mine = runpy.run_path(str(lab / "measure.py"))
    flows = list(zip(result.per_flow["kind"], result.per_flow["goodput_bps"], strict=True))
    link = result.bottleneck
    return pd.Series(
        {
            "Jain's index": mine["jain_index"]([goodput for _, goodput in flows]),
            **{f"{kind}, part": mine["share"](flows, kind) for kind in result.kinds.index},
            "wait, ms": 1e3 * mine["queue_delay_s"](link["mean_queue_packets"], 1000, link["rate_bps"]),
        }
    ).round(3)


pd.DataFrame({"droptail": measured(greedy), "longer": measured(longer), "red": measured(red)})

# %% [markdown]
# ## Plot
#
# The greedy one, and your polite sender in its place:

# %%
greedy.plot()

# %%
polite = experiment("polite")
polite.plot()

# %%
measured(polite).to_frame("polite")

# %% [markdown]
# Other senders, another queue: move a slider, then press the button.

# %%
lab.controls(
    experiment,
    other=["cbr", "polite", "daa", "trabol", "als", "rap", "tfrc"],
    constant_mbit=(0.2, 3.0, 0.2),
    rtt_ms=(20, 600, 20),
    buffer_packets=(5, 60, 5),
    queue=["droptail", "red"],
    seed=(1, 5),
)

# %% [markdown]
# ## Explain
#
# 1. Compare with your predictions. At 2 Mb/s of constant rate with drop-tail, TCP has next to nothing and the constant rate hardly loses a packet: who finds
#    the last place in the queue, and who finds it full?
#
# 2. RED drops everybody's packets alike. Why does it give TCP a little more, and why not its share? What would a queue have to know to do better?
#
# 3. At 2.4 Mb/s: compare the loss of the constant rate with `least_loss`. What does it gain by sending more than the link carries?
#
# 4. Your polite sender hears of losses every five seconds. Where in the plot do you see that? What would become of it at a round trip of 600 ms?
#
# 5. Which of the other senders leave TCP its share, and from whom does each hear that it should?

# %% [markdown]
# ## Check

# %%
lab.check()
