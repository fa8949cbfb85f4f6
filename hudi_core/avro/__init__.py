"""Avro in tables: foreign schemas made safe, single records, Hudi's wrappers."""
