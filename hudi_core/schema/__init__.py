"""Schemas: Arrow, Avro and Hudi types, and schema evolution."""
