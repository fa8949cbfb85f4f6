"""Incoming rows of a write: staged, ordered, combined and merged."""
