"""What must hold of a folder that is no table yet, or of a table that has lost what tells of it.

Nobody can write such a table, and some cannot read it; but whoever does reads the right rows, never
some of them and never others. The numbers are those of :mod:`tests.crash.check_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from deltalake.exceptions import DeltaError
from pyiceberg.exceptions import NoSuchTableError

import hudi_core as hudi
from hudi_core.config.table_parsers import NATIVE
from hudi_core.errors import HudiError, NotATableError
from hudi_core.metadata.hfile.block import DATA_MAGIC
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partition_types import FILES
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.table import StoredPartitions
from tests.crash.check_table import ACKED, Report, Tried, check_table
from tests.crash.found_folders import READERS
from tests.crash.place import Place, place_of
from tests.crash.readers import Row, as_tuples, by_hudi_rs, foreign_reader, foreign_readers
from tests.crash.rows import BASE, as_rows
from tests.crash.tables import CANARY, OPTIONS

_LOUD: Final = (HudiError, DeltaError, NoSuchTableError, OSError, ValueError)
"""How readers say that they cannot read a table."""
_PROPERTIES: Final = ".hoodie/hoodie.properties"


def check_unfinished(
    path: Path, source: str | None, tried: Sequence[Tried], seen: frozenset[str]
) -> Report:
    """Return which promises are broken.

    ``source``: what it was at first; ``None`` for a table that has lost something. ``tried``,
    ``seen``: see :func:`~tests.crash.check_table.check_table`.
    """
    if any(one.told == ACKED for one in tried) or _lists_folders(path, source):
        return check_table(path, tried, at_rest=False, seen=seen)
    found: list[str] = []
    if source is None:
        found += _damaged(path)
    elif not (path / _PROPERTIES).exists():
        found += _disagreement(source, as_tuples(READERS[source](path)))
    else:
        # readers of Hudi tables come from now on
        found += _damaged(path)
    for file in path.rglob("*"):
        if file.is_file() and CANARY.encode() in file.read_bytes():
            found.append(f"11: {file} holds a secret")
    return Report(frozenset(), found)


def check_new(where: Path | Place) -> Report:
    """Return which promises a table breaks that is being made: it is there, without rows, for
    everybody or for nobody."""
    place, found = place_of(where), list[str]()
    if _PROPERTIES not in place.files():
        try:
            place.open()
        except NotATableError:
            pass
        else:
            found.append("1: a table is opened that has no properties")
    else:
        table = place.open()
        plain = place.open({**OPTIONS, "hoodie.metadata.enable": "false"})
        seen = {
            "our reader": as_tuples(table.to_arrow()),
            "our reader of folders": as_tuples(plain.to_arrow()),
            "hudi-rs": by_hudi_rs(place),
        }
        for name, foreign in foreign_readers(place, table.format).items():
            seen[f"the reader of {name}"] = foreign.rows()
        found += [f"1: {who} sees {sorted(rows)}" for who, rows in seen.items() if rows]
        report = validate(table._session.opened.client, frozenset({Check.FILES}))
        found += [f"3: {one}" for one in (*report.findings, *report.unreadable.items())]
    for file in place.files(hidden=True):
        if CANARY.encode() in place.read(file):
            found.append(f"11: {file} holds a secret")
    return Report(frozenset(), found)


def _lists_folders(path: Path, source: str | None) -> bool:
    """Whether the metadata table is being rebuilt: it is in nobody's way any more."""
    if source is not None:
        return False
    return FILES in StoredPartitions.of(hudi.Table.open(str(path), OPTIONS).config).building


def _damaged(path: Path) -> list[str]:
    """Return who reads other rows than there are; who refuses to read is right."""
    plain = {**OPTIONS, "hoodie.metadata.enable": "false"}
    readers: dict[str, Callable[[], list[Row]]] = {
        "our reader": lambda: as_tuples(hudi.Table.open(str(path), OPTIONS).to_arrow()),
        "our reader of folders": lambda: as_tuples(hudi.Table.open(str(path), plain).to_arrow()),
    }
    format_name = hudi.Table.open(str(path), OPTIONS).format
    for name in format_name.split(","):
        if name != NATIVE:
            readers[f"the reader of {name}"] = partial(_by_format, path, name)
    found = []
    for who, read in readers.items():
        try:
            rows = read()
        except _LOUD:
            continue
        found += _disagreement(who, rows)
    if _has_list(path):
        # knows nothing of formats, and so has nothing to refuse
        found += _disagreement("hudi-rs", by_hudi_rs(path))
    return found


def _by_format(path: Path, format_name: str) -> list[Row]:
    reader = foreign_reader(path, format_name)
    assert reader is not None
    return reader.rows()


def _has_list(path: Path) -> bool:
    """Whether the metadata table lists the table's files: hudi-rs refuses a damaged list."""
    lists = path.joinpath(".hoodie/metadata/files").glob("*.hfile")
    return all(one.read_bytes().startswith(DATA_MAGIC) for one in lists)


def _disagreement(who: str, rows: list[Row]) -> list[str]:
    expected = as_rows(BASE)
    if frozenset(rows) == expected and len(rows) == len(expected):
        return []
    return [f"1: {who} sees {sorted(rows)}, not {sorted(expected)}"]
