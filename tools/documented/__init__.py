"""Runs the commands that the documentation shows: see README.md."""
