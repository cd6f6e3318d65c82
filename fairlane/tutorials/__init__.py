"""The files of the P4 tutorials' exercises, `topology.json` and `sN-runtime.json`, run as they are. See docs/tutorials-files.md."""
