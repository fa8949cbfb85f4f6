"""Known options and table properties, and frozen views of them."""
