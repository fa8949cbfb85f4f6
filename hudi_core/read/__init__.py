"""Queries: which files a reader reads, and their rows as Arrow batches."""
