"""The catalog: build it, resolve conflicts, compute changes, publish it."""
