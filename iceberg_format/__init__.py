"""Apache Iceberg as a table format: a room that is ready; it registers nothing yet."""
