"""Parse and validate manifests and other declarations, without running any code."""
