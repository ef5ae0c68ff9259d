"""Installed packages, and the import of plugin code."""
