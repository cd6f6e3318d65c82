from . import SimplePreLAG, ttypes

__all__ = ["SimplePreLAG", "ttypes"]
