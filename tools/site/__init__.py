"""The parts of the documentation's site beyond mkdocs: see README.md."""
