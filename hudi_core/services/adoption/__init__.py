"""Adoption of a folder of rows as a table."""
