"""Sessions: the active groups, loaded skills, steps and calls of one conversation each."""
