"""Generated packets through our switch and BMv2, which must agree on every byte: see README.md."""
