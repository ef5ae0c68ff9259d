"""Full-text search over the tools and skills of a catalog."""
