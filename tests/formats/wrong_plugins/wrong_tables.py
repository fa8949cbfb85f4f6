"""Tables of a format that is made wrong in one place."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hudi_core as hudi
from tests.formats.two_steps import FAST, SCHEMA, batch

WRONG = {"hoodie.table.format": "wrong", "hoodie.table.name": "wrong", **FAST}


KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}


PLAIN = {"hoodie.metadata.enable": "false"}


PREFIX = "hoodie.table.format.wrong."


ERROR = sqlite3.OperationalError("database is locked")


Fault = Callable[[Callable[[], Any]], Any]


def create(path: Path, **options: str) -> hudi.Table:
    own = {
        key if key.startswith("hoodie.") else f"{PREFIX}{key}": value
        for key, value in options.items()
    }
    given = {**WRONG, **KEYS, **own}
    return hudi.Table.create(str(path), SCHEMA, options=given)


def fails(error: BaseException) -> Fault:
    def fault(right: Callable[[], Any]) -> Any:
        raise error

    return fault


def gives(value: Any) -> Fault:
    return lambda right: value


def reads(table: hudi.Table) -> dict[str, int]:
    found = hudi.Table.open(table.path).to_arrow(columns=["id", "ts"])
    return dict(zip(*found.to_pydict().values(), strict=True))


def writes(table: hudi.Table) -> object:
    return hudi.Table.open(table.path, {**FAST, **PLAIN}).upsert(batch(2, "a"))
