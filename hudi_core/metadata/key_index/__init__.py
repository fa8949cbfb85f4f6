"""Indexes of keys and values in the metadata table."""
