"""Codecs for the bodies of instant files."""

from hudi_core.timeline.serde.codec import (
    InstantRecord,
    decode_clean,
    decode_cleaner_plan,
    decode_commit,
    decode_compaction_plan,
    decode_index_commit,
    decode_index_plan,
    decode_record,
    decode_replace_commit,
    decode_requested_replace,
    decode_restore,
    decode_restore_plan,
    decode_rollback,
    decode_rollback_plan,
    decode_savepoint,
    encode,
    encode_datum,
)
from hudi_core.timeline.serde.container import MAX_INSTANT_BYTES

__all__ = [
    "MAX_INSTANT_BYTES",
    "InstantRecord",
    "decode_clean",
    "decode_cleaner_plan",
    "decode_commit",
    "decode_compaction_plan",
    "decode_index_commit",
    "decode_index_plan",
    "decode_record",
    "decode_replace_commit",
    "decode_requested_replace",
    "decode_restore",
    "decode_restore_plan",
    "decode_rollback",
    "decode_rollback_plan",
    "decode_savepoint",
    "encode",
    "encode_datum",
]
