"""Configuration, and what is enabled."""
