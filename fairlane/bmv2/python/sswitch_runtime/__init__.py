import _bmv2_names

if not _bmv2_names.step_aside("sswitch_runtime", globals()):
    from . import SimpleSwitch, ttypes

    __all__ = ["SimpleSwitch", "ttypes"]
