"""Hudi's entries in a base file's footer, record keys above all.

Source: ``hudi-format`` section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow.parquet as pq

from hudi_core.hashing.bloom import TYPE_CODE, DynamicBloom

MIN_KEY_FOOTER: Final = "hoodie_min_record_key"
MAX_KEY_FOOTER: Final = "hoodie_max_record_key"
BLOOM_TYPE_FOOTER: Final = "hoodie_bloom_filter_type_code"
BLOOM_FOOTER: Final = "org.apache.hudi.bloomfilter"
AVRO_SCHEMA_FOOTER: Final = "parquet.avro.schema"
BOUNDS_FOOTER: Final = "hudi.bounds"
BOUNDS_OF_ALL: Final = "of all values"
"""A column of floating-point numbers has bounds in this footer only where it holds no NaN."""


@dataclass(frozen=True, slots=True)
class KeyFooter:
    """Record keys in the footer of a base file.

    Bounds are in the order of Java's strings, by UTF-16 units; ``None`` where they are not known.
    """

    min_key: str | None
    max_key: str | None
    bloom: DynamicBloom | None
    rows: int


def key_footer(footer: pq.FileMetaData, path: str) -> KeyFooter:
    """The record keys of a base file, as its footer describes them."""
    entries = footer.metadata or {}
    low, high = entries.get(MIN_KEY_FOOTER.encode()), entries.get(MAX_KEY_FOOTER.encode())
    bloom = entries.get(BLOOM_FOOTER.encode())
    is_dynamic = entries.get(BLOOM_TYPE_FOOTER.encode()) == TYPE_CODE.encode()
    return KeyFooter(
        None if low is None else low.decode(),
        None if high is None else high.decode(),
        DynamicBloom.parse(bloom, path) if bloom is not None and is_dynamic else None,
        footer.num_rows,
    )
