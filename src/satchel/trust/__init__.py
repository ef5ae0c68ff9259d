"""What the user trusts, by content, and what is locked."""
