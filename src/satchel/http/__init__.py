"""The checks of a request's host and origin, shared by what serves over HTTP."""
