"""Experiments: one TOML file per figure or table, and their loader."""
