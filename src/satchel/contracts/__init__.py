"""Contracts: a tool's whole interface as one record, and the validation of plans."""
