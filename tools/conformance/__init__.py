"""Holds our P4 compiler and switch against a checkout of p4c: see README.md."""
