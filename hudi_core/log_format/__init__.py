"""Hudi's log files: blocks one behind the other (``hudi-format`` section 4).

The content of an HFile block is a whole HFile, that of a parquet block a whole parquet file.

``hudi`` (hudi-rs) 0.5, the only package that knows them, merges log files while it reads a slice;
it hands out no block, and writes none.
"""

from hudi_core.log_format.block import (
    BlockPlace,
    BlockType,
    Cursor,
    DeletedRecord,
    HeaderKey,
    LogBlock,
    decode_avro_content,
    decode_delete_content,
    encode_delete_content,
    encode_log_block,
    find_log_blocks,
    read_log_blocks,
)

__all__ = [
    "BlockPlace",
    "BlockType",
    "Cursor",
    "DeletedRecord",
    "HeaderKey",
    "LogBlock",
    "decode_avro_content",
    "decode_delete_content",
    "encode_delete_content",
    "encode_log_block",
    "find_log_blocks",
    "read_log_blocks",
]
