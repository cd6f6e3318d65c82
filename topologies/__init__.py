"""Networks as plain data, and one builder per fabric."""
