from . import Standard, ttypes

__all__ = ["Standard", "ttypes"]
