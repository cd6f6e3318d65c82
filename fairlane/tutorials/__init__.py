"""Runs the files of the P4 tutorials' exercises, `topology.json` and `sN-runtime.json`, unchanged. See docs/tutorials-files.md."""
