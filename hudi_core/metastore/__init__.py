"""Hive metastores: their Thrift interface, and the tables they know."""
