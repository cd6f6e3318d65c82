import _bmv2_names

globals().update(_bmv2_names.fairlane("interface", __name__).types("simple_pre"))
