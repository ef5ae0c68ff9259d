"""Find, read, import and watch skills, plugins and packages on disk."""
