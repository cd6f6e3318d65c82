"""Schemes: what a switch does to the packets of a port, each in a folder of its own (p4src/schemes/README.md).

`base` is what a folder's `scheme.py` is written with, `registry` finds and loads folders, `chosen` writes the P4 file that puts some of them
into a program, `recorded` describes a user's own in records. Nothing outside a scheme's folder knows its name.
"""

FOLDERS_VARIABLE = "FAIRLANE_SCHEMES"
"""The environment variable that lists folders of a user's own."""
