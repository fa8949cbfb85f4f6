"""Updates, deletes and merges by conditions."""
