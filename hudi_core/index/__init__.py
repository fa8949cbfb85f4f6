"""Indexes: from incoming record keys to the file groups that hold them."""
