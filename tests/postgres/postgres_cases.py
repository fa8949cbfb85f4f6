"""The SQL format over PostgreSQL: the same conformance as over SQLite, and what a server can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hudi_conformance.formats import TwoStepFormat, TwoStepFormatSuite
from hudi_sql_format.conformance import INTRUSION, rows_of

import hudi_core as hudi
from tests.postgres.server import PASSWORD, Server, server

_RUNNING: dict[str, Server] = {}
LOSS = "DELETE FROM hudi_tables WHERE name = '{path}'"
URL, PASSWORD_OPTION = "hoodie.table.format.sql.url", "hoodie.table.format.sql.password"
ROWS = pa.table({"id": ["a", "b"], "value": [1, 2]})


@pytest.fixture(scope="module", autouse=True)
def running() -> Iterator[Server]:
    with server() as found, pytest.MonkeyPatch.context() as patched:
        _RUNNING["server"] = found
        # as most of PostgreSQL's clients are given it
        patched.setenv("PGPASSWORD", PASSWORD)
        yield found


def ask(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(_RUNNING["server"].connect()) as connection:
        cursor = connection.execute(query.format(path=path).encode())
        found = cursor.fetchall() if cursor.description else []
        connection.commit()
        return found


class TestPostgres(TwoStepFormatSuite):
    format: ClassVar = TwoStepFormat(
        "sql",
        read=lambda path: rows_of(path, ask),
        lose=lambda path: ask(path, LOSS),
        intrude=lambda path: ask(path, INTRUSION),
        options={},
    )

    @pytest.fixture
    def format_under_test(self, running: Server) -> TwoStepFormat:
        one = type(self).format
        return TwoStepFormat(one.name, one.read, one.lose, one.intrude, options={URL: running.url})


def test_the_password_is_given_and_never_kept(
    tmp_path: Path, running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    path, given = tmp_path / "table", {PASSWORD_OPTION: PASSWORD}
    options = {URL: running.url, **given}
    table = hudi.Table.create(
        str(path), ROWS.schema, name="t", record_key="id", format="sql", options=options
    )
    table.insert(ROWS)
    assert not any(
        PASSWORD.encode() in one.read_bytes() for one in path.rglob("*") if one.is_file()
    )
    assert hudi.Table.open(str(path), given).to_arrow().num_rows == 2
    with pytest.raises(hudi.errors.StorageError, match="password"):
        hudi.Table.open(str(path)).to_arrow()


def test_a_server_that_restarted_is_found_again(tmp_path: Path, running: Server) -> None:
    path = tmp_path / "table"
    table = hudi.Table.create(
        str(path), ROWS.schema, name="t", record_key="id", format="sql", options={URL: running.url}
    )
    table.insert(ROWS)
    # as a restart does to whoever is connected
    ask(
        path, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    )
    table.upsert(pa.table({"id": ["a"], "value": [7]}))
    assert sorted(table.to_arrow()["value"].to_pylist()) == [2, 7]
