from . import SimpleSwitch, ttypes

__all__ = ["SimpleSwitch", "ttypes"]
