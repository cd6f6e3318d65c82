"""Files that people write, TOML and JSON: read with the place of every value, and checked against dataclasses."""
