"""Codecs for the bodies of instant files."""

from hudi_core.timeline.serde.codec import (
    InstantRecord,
    decode_commit,
    decode_datum,
    decode_record,
    decode_replace_commit,
    decode_requested_replace,
    decode_rollback,
    decode_rollback_plan,
    encode,
    encode_datum,
)
from hudi_core.timeline.serde.container import MAX_INSTANT_BYTES

__all__ = [
    "MAX_INSTANT_BYTES",
    "InstantRecord",
    "decode_commit",
    "decode_datum",
    "decode_record",
    "decode_replace_commit",
    "decode_requested_replace",
    "decode_rollback",
    "decode_rollback_plan",
    "encode",
    "encode_datum",
]
