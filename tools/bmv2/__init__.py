"""Drives BMv2's simple_switch: its process, its Thrift port, its packets. See README.md."""
