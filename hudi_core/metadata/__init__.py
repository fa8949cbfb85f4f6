"""The metadata table, and what data files and it have in common: bloom filters."""
