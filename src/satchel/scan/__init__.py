"""Scan: what a reviewer wants to look at before a skill or plugin of others is trusted."""
