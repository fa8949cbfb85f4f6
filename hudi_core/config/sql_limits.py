"""Limits of what is written in SQL and run in this process."""

from __future__ import annotations

import re
from typing import Final

from hudi_core.config.key import Group
from hudi_core.config.options import Option, Options
from hudi_core.config.parsers import integer

_MEMORY: Final = re.compile(r"[0-9]+(\.[0-9]+)? ?([KMGT]i?B|%)", re.IGNORECASE)


def memory(text: str) -> str:
    """Check an amount of memory, as DuckDB writes it."""
    if _MEMORY.fullmatch(text.strip()) is None:
        raise ValueError("it is no amount of memory, such as 500MB, 2GB or 50%")
    return text.strip()


class SqlLimits(Options, group=Group.WRITE):
    """What DuckDB may take for SQL in writes."""

    memory_limit: Option[str] = Option(
        "hudi.sql.memory.limit",
        default="50%",
        parse=memory,
        doc="Memory that DuckDB takes at most for one write with texts in SQL (conditions, values, "
        "validators, transformers): an amount, or a part of the machine's. Nothing is spilled to a "
        "disk. On Spark texts are run by Spark.",
    )
    timeout_s: Option[int] = Option(
        "hudi.sql.timeout",
        default=600,
        parse=integer(0),
        doc="Seconds after which DuckDB gives up on a text in SQL, which is run file by file; 0 "
        "for no limit. It looks at the clock between batches of rows, not within one function of "
        "one row.",
    )
