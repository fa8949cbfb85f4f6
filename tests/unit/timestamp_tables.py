"""Key generators of tables whose partitions are made of timestamps, for tests."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from hudi_core.config.stored_table import new_table_config
from hudi_core.config.table import TableConfig
from hudi_core.keygen import KeyGenerator, key_generator
from hudi_core.schema.table_schema import TableSchema

PREFIX = "hoodie.keygen.timebased."
KINDS = {
    "UNIX_TIMESTAMP": pa.int64(),
    "EPOCHMILLISECONDS": pa.int64(),
    "EPOCHMICROSECONDS": pa.int64(),
    "SCALAR": pa.int64(),
    "DATE_STRING": pa.string(),
    "MIXED": pa.string(),
}
ISO = "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ"
UTC = dt.UTC
DAYS = {"unit": "DAYS"}


def options(kind: str, output: str, **more: str) -> dict[str, str]:
    """Return the options of a table; ``input_zone`` stands for ``input.timezone``, and so on."""
    names = {
        "zone": "timezone",
        "input_zone": "input.timezone",
        "output_zone": "output.timezone",
        "inputs": "input.dateformat",
        "delimiter": "input.dateformat.list.delimiter.regex",
        "unit": "timestamp.scalar.time.unit",
    }
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts",
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        f"{PREFIX}timestamp.type": kind,
        f"{PREFIX}output.dateformat": output,
        **{f"{PREFIX}{names[name]}" if name in names else name: more[name] for name in more},
    }


def generator(given: dict[str, str], kind: pa.DataType) -> KeyGenerator:
    return of_config(new_table_config(given), kind)


def of_config(config: TableConfig, kind: pa.DataType) -> KeyGenerator:
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("city", pa.string())])
    return key_generator(config, TableSchema.create(schema))


def made(keygen: KeyGenerator, values: list[Any], kind: pa.DataType) -> list[str]:
    batch = pa.record_batch(
        {
            "id": pa.array(["a"] * len(values), pa.string()),
            "ts": pa.array(values, kind),
            "city": pa.array(["Oslo"] * len(values)),
        }
    )
    return list(keygen.partition_paths(batch).to_pylist())


def paths(kind: str, output: str, values: list[Any], **more: Any) -> list[str]:
    arrow = more.pop("arrow", KINDS[kind])
    return made(generator(options(kind, output, **more), arrow), values, arrow)
