"""Random P4_16 programs, judged by an interpreter of the specification's text. See README.md."""
