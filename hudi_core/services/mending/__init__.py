"""Validation of tables, and their repair."""
