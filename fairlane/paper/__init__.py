"""The papers' figures and tables: sweeps, their expectations, and the report."""
