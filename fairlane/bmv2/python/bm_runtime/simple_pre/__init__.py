from . import SimplePre, ttypes

__all__ = ["SimplePre", "ttypes"]
