"""The connector layer: what query engines plan and read tables by (RFC-40)."""
