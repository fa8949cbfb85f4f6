"""The write path: pure functions over batches, and operations."""
