"""Tables for Trino, by its Thrift connector's protocol (the extra ``hive``).

Stateless: whatever a call needs is in its arguments, so that it may be repeated, and answered by
another server than the call before. What a server keeps only spares it work.
"""
