"""Records and files of the metadata table: file groups, layers, codec."""
