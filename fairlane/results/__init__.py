"""Results of runs: records, metrics, plots, reports."""
