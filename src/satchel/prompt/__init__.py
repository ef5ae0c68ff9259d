"""Text for the model: skill listing, notes, loaded skills, tool guide and changes."""
