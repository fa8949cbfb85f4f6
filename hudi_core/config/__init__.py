"""The options and table properties the project knows, and the frozen views made from them."""
