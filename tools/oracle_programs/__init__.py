"""Random P4_16 programs, compared with an interpreter of the specification's text. See README.md."""
