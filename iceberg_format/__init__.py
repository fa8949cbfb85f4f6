"""Apache Iceberg as a table format: the room is there, the plugin is not; nothing is registered yet."""
