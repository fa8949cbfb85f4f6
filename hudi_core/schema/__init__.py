"""Schemas: Arrow, Avro and Hudi types of columns, and how one schema becomes another."""
