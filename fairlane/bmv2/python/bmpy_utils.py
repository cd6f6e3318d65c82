import _bmv2_names

_bmv2_names.publish("connection", __name__, globals())
