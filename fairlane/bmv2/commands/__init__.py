"""The commands of BMv2's run-time command line, by what they act on."""
