"""Where experiments run: in virtual time, and on Mininet."""
