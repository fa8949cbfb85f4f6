"""The timeline of a table: its instants, on storage and in memory."""
