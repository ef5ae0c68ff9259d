"""Find and read skills, plugins and packages on disk."""
