"""Exact conversion between units of measurement, as a plugin for Satchel."""
