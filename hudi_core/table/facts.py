"""A table in one line, and as a small table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from hudi_core.model.client import MetaClientView


def facts_of(client: MetaClientView) -> Mapping[str, str | list[str]]:
    """What a table is, as the last call saw it.

    Nothing is read for it.
    """
    config = client.config
    return {
        "path": client.base_path,
        "name": config.name,
        "format": config.table_format,
        "record_key": list(config.record_key_fields),
        "partition_by": list(config.partition_fields),
    }


def as_html(facts: Mapping[str, str | list[str]]) -> str:
    """Facts as rows of HTML."""
    rows = (
        f"<tr><th>{name.replace('_', ' ')}</th>"
        f"<td>{escape(fact if isinstance(fact, str) else ', '.join(fact))}</td></tr>"
        for name, fact in facts.items()
    )
    return f"<table>{''.join(rows)}</table>"
