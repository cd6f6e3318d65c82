from fairlane.bmv2 import interface

globals().update(interface.types("standard"))
