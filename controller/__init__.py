"""The control plane: counts connections, sets fair rates and RED parameters over P4Runtime."""
