# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 1: A first P4 forwarder and its test
#
# You write an IPv4 router in P4, `router.p4`, and a packet test good enough to tell a right router from a faulty one, `router.stf`. Both are
# beside this notebook; the [lab's page](README.md) has the theory. Save a file, run a cell.

# %%
import tempfile

from fairlane.labs.notebook import Lab

lab = Lab("01")

# %% [markdown]
# ## Predict
#
# Three routers in a row, a host on each (`network/topology.json`). h1 sends to h3. Write your answers here.
#
# 1. On each of the four links: which Ethernet addresses, which time to live?
#
# 2. `network/s1-runtime.json` has a route for 10.0.0.0/16. Where does a packet from h1 to 10.0.9.9 end, and what if s2 had that route too, back to s1?
#
# 3. The header checksum is a sum. By how much does it change when the time to live drops by one?

# %% [markdown]
# ## Run
#
# Your test against your router:

# %%
lab.fairlane("stf", lab / "router.p4", lab / "router.stf")

# %% [markdown]
# ## Plot
#
# Your router as all three routers, in virtual time, and the first packet from h1 to h3 on each link of its way:

# %%
captures = tempfile.TemporaryDirectory()
lab.fairlane(
    "run",
    lab / "network/topology.json",
    "--fabric",
    "virtual",
    "--program",
    lab / "router.p4",
    "--pcap",
    captures.name,
    "--out",
    f"{captures.name}/results",
)

# %%
from fairlane.labs.notebook import picture

lab.python(lab / "hops.py", captures.name)
picture(f"{captures.name}/hops.png")

# %% [markdown]
# ## Explain
#
# 1. Compare with your predictions, link by link.
#
# 2. Which faults did your first test not find? What did it not look at?
#
# 3. Suppose that s2 had a default route back to s1, and that routers left the time to live as it is. What happens to one packet to 10.0.9.9? What do
#    the links carry after an hour in which h1 sends one each second?
#
# 4. Why does a router verify the header checksum before it writes a new one?

# %% [markdown]
# ## Check

# %%
lab.check()
