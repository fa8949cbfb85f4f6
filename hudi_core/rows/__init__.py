"""Rows of a write on their way to base files: staged, ordered, combined and merged."""
