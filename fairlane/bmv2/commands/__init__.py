"""The commands of BMv2's run-time command line, grouped by object."""
