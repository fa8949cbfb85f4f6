"""File groups and file slices of a table, as of an instant."""
