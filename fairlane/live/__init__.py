"""The live view: a page on loopback that shows a run while it goes on, lets its reader steer one in virtual time, and opens finished ones."""
