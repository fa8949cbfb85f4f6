"""The kinds of partitions of the metadata table, one module each."""
