"""Engines run pure functions over rows; nothing else in the project knows where they run."""
