"""What the command line and the pages of `satchel dev` say about a catalog: one record for both."""
