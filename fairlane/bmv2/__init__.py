"""BMv2's interfaces on Fairlane's switch: its Thrift services, its command-line tools under their names, and p4-utils' networks."""
