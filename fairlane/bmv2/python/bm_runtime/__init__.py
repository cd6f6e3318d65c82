import _bmv2_names

_bmv2_names.step_aside("bm_runtime", globals())
