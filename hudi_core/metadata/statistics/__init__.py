"""Ranges of columns and of expressions, of files and partitions."""
