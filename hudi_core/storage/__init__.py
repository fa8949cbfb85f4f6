"""All input and output: metadata files, data files, and where they are."""
