"""Run plugins in their own processes."""
