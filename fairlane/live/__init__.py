"""The live view: a page on loopback that shows a current run, can control a run in virtual time, and opens finished runs."""
