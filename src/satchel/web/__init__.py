"""The pages of `satchel dev`."""
