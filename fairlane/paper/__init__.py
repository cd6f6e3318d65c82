"""The papers' figures and tables: sweeps, what is expected of them, and the report."""
