"""Avro in tables: foreign schemas made safe, single records, Hudi's wrappers."""

from hudi_core.avro.datum import (
    ParsedSchema,
    WriterSchema,
    decode_datum,
    encode_datum,
    parse_writer_schema,
)

__all__ = ["ParsedSchema", "WriterSchema", "decode_datum", "encode_datum", "parse_writer_schema"]
