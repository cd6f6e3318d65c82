import _bmv2_names

_bmv2_names.fairlane("messages", __name__).alias(__name__)
