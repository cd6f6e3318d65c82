"""The control plane: counts connections, sets fair rates and schemes' parameters over P4Runtime."""
