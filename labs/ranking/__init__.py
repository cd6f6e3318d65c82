"""Schemes against each other in the same two situations, and one page that ranks them; `python -m fairlane.labs.ranking FILE.py`."""
