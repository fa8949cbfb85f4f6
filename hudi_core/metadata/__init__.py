"""The metadata table, and bloom filters shared with data files."""
