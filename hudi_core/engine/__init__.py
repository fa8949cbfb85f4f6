"""Engines run pure functions over rows; only they know where."""
