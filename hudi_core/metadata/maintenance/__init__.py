"""Building, compacting, checking and repairing the metadata table."""
