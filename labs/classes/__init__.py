"""A class of students: its answers graded, tables for other programs, a page."""
