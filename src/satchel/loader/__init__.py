"""The loader: one reconcile pass over all sources.

A pass takes the results of the last one, reads what may have changed, imports what did change,
and builds the catalog from everything. It compares states; it does not replay events.
"""
