"""Hudi's log files: blocks one behind the other (``hudi-format`` section 4).

The content of an HFile block is a whole HFile, that of a parquet block a whole parquet file.

``hudi`` (hudi-rs) 0.5, the only package that knows them, merges log files while it reads a slice;
it hands out no block, and writes none.
"""
