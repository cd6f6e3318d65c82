"""Studies: many runs of one experiment over axes and seeds, their measures, tables, figures with intervals, and a page."""
