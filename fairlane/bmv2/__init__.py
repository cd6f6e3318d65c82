"""What was written for BMv2, on Fairlane's switch: its Thrift interface, its command line tools by their names, and p4-utils' networks."""
