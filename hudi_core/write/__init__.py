"""The write path: pure functions over Arrow batches, and the operations made of them."""
