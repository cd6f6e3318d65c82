import _bmv2_names

_bmv2_names.fairlane("interface", __name__).publish(__name__, "standard")
