"""Tables in other processes: a pickle holds path and options, and no secret."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import NotATableError, TableClosedError
from tests.tables import new_table

KEYS = {"fs.s3a.access.key": "canary-name", "fs.s3a.secret.key": "canary-secret"}
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", ROWS, KEYS)


def again(table: hudi.Table) -> hudi.Table:
    found: hudi.Table = pickle.loads(pickle.dumps(table))
    return found


def test_a_pickle_opens_the_table(table: hudi.Table) -> None:
    data = pickle.dumps({"of several": [table]})
    table.delete(ROWS.slice(2))
    [opened] = pickle.loads(data)["of several"]
    assert repr(opened) == repr(table)
    assert opened.count() == 2  # what was committed since, too
    opened.upsert(ROWS)
    assert table.count() == 3


def test_a_pickle_has_the_options_and_no_secret(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert b"canary" not in pickle.dumps(table)
    given = table._session.options
    assert again(table)._session.options == {name: given[name] for name in given.keys() - KEYS}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "my secret")
    key = again(table)._session.opened.client.storage_options.s3_secret_key
    assert key is not None
    assert key.reveal() == "my secret"


def test_what_is_missing_is_named(table: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    data = pickle.dumps(table)
    with pytest.raises(hudi.HudiError, match=r"secrets \(fs\.s3a\.access\.key, fs\.s3a\.secret"):
        pickle.loads(data)
    with pytest.raises(hudi.HudiError, match=r"is missing\. Set them in the environment of this"):
        pickle.loads(data)


def test_a_table_that_is_gone_or_closed(table: hudi.Table) -> None:
    opened = hudi.Table.open(table.path)
    data = pickle.dumps(opened)
    opened.close()
    with pytest.raises(TableClosedError):
        pickle.dumps(opened)
    shutil.rmtree(table.path)
    with pytest.raises(NotATableError, match=r"/t"):
        pickle.loads(data)


@pytest.mark.impure
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_a_pool_read_and_write(table: hudi.Table, method: str) -> None:
    rows = pa.table({"id": [4, 5]})
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
        assert pool.submit(hudi.Table.to_arrow, table, "id").result().num_rows == 3
        done = pool.submit(hudi.Table.upsert, table, rows).result()
    assert (done.inserted, table.count()) == (2, 5)
