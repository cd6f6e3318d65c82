"""What runs give: their records read back, metrics, plots, reports."""
