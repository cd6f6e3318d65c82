import _bmv2_names

_bmv2_names.step_aside("p4", globals())
