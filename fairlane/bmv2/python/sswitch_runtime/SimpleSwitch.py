from fairlane.bmv2 import interface

interface.publish(__name__, "simple_switch")
