"""Fairlane's command line, run loop, records, metrics, plots and report."""
