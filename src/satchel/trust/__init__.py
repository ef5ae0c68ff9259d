"""What the user trusts, by content, what is locked, and which source owns a name."""
