"""Plugins: hook specifications, the hook host, and the contribution of a plugin."""
