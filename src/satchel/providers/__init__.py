"""Providers: where skills, plugins, tools and groups come from that are in no given folder."""
