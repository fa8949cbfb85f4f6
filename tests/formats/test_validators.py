"""Validators: what must hold of a table before a commit completes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.validators import VALIDATOR_CLASSES, ValidatorKind, ValidatorsConfig
from hudi_core.errors import CommitValidationError, InvalidOptionError
from hudi_core.model.result import ProposedCommit
from hudi_core.read.dataset import HudiDataset
from tests.formats.service_tables import agree, batch, new_table

QUERIES = {
    ValidatorKind.EQUALITY: ValidatorsConfig.equality.key,
    ValidatorKind.INEQUALITY: ValidatorsConfig.inequality.key,
    ValidatorKind.SINGLE_VALUE: ValidatorsConfig.single_value.key,
}
"""Options of the queries, by what their rows have to be."""


def asked(kind: ValidatorKind, *queries: str) -> Mapping[str, str]:
    """Options with queries, as Hudi's users give them."""
    [name] = [name for name, one in VALIDATOR_CLASSES.items() if one is kind]
    return {ValidatorsConfig.kinds.key: name, QUERIES[kind]: ";".join(queries)}


def files(path: Path) -> set[Path]:
    return {one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts}


@pytest.fixture(params=["native", "iceberg", "delta"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", request.param)


@pytest.fixture
def native(tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t")


def test_a_refused_commit_leaves_nothing(table: hudi.Table) -> None:
    path = Path(table.path)
    rows, kept, writes = agree(path), files(path), table.timeline.completed_writes()
    few = asked(ValidatorKind.SINGLE_VALUE, "select max(ts) from <TABLE_NAME>#2")
    with pytest.raises(CommitValidationError, match="it returns 7, not 2") as caught:
        table.upsert(batch(7, "a", "n"), options=few)
    assert caught.value.facts["validator"] == "select max(ts) from <TABLE_NAME>"
    assert not caught.value.retryable
    assert (agree(path), files(path)) == (rows, kept)
    assert table.timeline.completed_writes() == writes

    table.upsert(batch(2, "a", "n"), options=few)
    assert len(table.timeline.completed_writes()) == len(writes) + 1
    assert agree(path) != rows


@pytest.mark.parametrize(
    ("kind", "query", "holds"),
    [
        (ValidatorKind.EQUALITY, "select id from <TABLE_NAME>", False),
        (ValidatorKind.EQUALITY, "select distinct city from <TABLE_NAME> -- both", True),
        (ValidatorKind.EQUALITY, "select city, count(*) from <TABLE_NAME> group by all", False),
        (ValidatorKind.INEQUALITY, "select count(*) from <TABLE_NAME>", True),
        (ValidatorKind.INEQUALITY, "select min(id) from <TABLE_NAME>", False),
        (ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#5", True),
        (ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME> # 5.0 ", True),
        (ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#4", False),
        (ValidatorKind.SINGLE_VALUE, "select max(city) from <TABLE_NAME>#rome", True),
        (ValidatorKind.SINGLE_VALUE, "select max(ts) > 2 from <TABLE_NAME>#true", True),
        (ValidatorKind.SINGLE_VALUE, "select max(ts) from <TABLE_NAME> where ts > 9#0", False),
        (ValidatorKind.SINGLE_VALUE, "select ts from <TABLE_NAME>#3", False),
        (ValidatorKind.SINGLE_VALUE, "select 1 / (count(*) - 5) from <TABLE_NAME>#1", False),
    ],
)
def test_queries(native: hudi.Table, kind: ValidatorKind, query: str, holds: bool) -> None:
    options, rows = asked(kind, query), batch(3, "c")
    if holds:
        assert native.upsert(rows, options=options).inserted == 1
        return
    with pytest.raises(CommitValidationError):
        native.upsert(rows, options=options)
    assert native.count() == 4


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select count(*) from <TABLE_NAME>, read_text('/etc/hostname')#5", "disabled"),
        ("select count(*) from <TABLE_NAME>, '/etc/hostname'#5", "does not exist"),
    ],
)
def test_queries_see_the_table_alone(native: hudi.Table, query: str, reason: str) -> None:
    with pytest.raises((InvalidOptionError, CommitValidationError), match=reason):
        native.upsert(batch(3, "c"), options=asked(ValidatorKind.SINGLE_VALUE, query))
    assert native.count() == 4


def test_each_of_several_queries_counts(native: hudi.Table) -> None:
    """They are separated by semicolons; an empty one is none."""
    one, two, three = (
        "select count(*) from <TABLE_NAME>#5",
        "select max(ts) from <TABLE_NAME>#3",
        "select min(id) from <TABLE_NAME>#a",
    )
    held = asked(ValidatorKind.SINGLE_VALUE, one, f" {two} ", "", three)
    assert native.upsert(batch(3, "c"), options=held).inserted == 1
    for query, reason in (
        ("select count(*) from <TABLE_NAME>", "it returns 6, not 5"),
        ("select max(ts) from <TABLE_NAME>", "it returns 4, not 3"),
    ):
        with pytest.raises(CommitValidationError, match=reason) as caught:
            native.upsert(batch(4, "d" if "count" in query else "c"), options=held)
        assert caught.value.facts["validator"] == query
    same, other = (ValidatorKind.EQUALITY, ValidatorKind.INEQUALITY)
    with pytest.raises(CommitValidationError, match="not there after it"):
        native.upsert(
            batch(4, "c"),
            options=asked(
                same, "select count(*) from <TABLE_NAME>", "select sum(ts) from <TABLE_NAME>"
            ),
        )
    with pytest.raises(CommitValidationError, match="the same before and after"):
        native.upsert(
            batch(4, "c"),
            options=asked(
                other, "select sum(ts) from <TABLE_NAME>", "select count(*) from <TABLE_NAME>"
            ),
        )
    assert native.count() == 5


def test_every_operation_is_validated(table: hudi.Table) -> None:
    rows = agree(Path(table.path))
    same = {"options": asked(ValidatorKind.EQUALITY, "select count(*), sum(ts) from <TABLE_NAME>")}
    for write, given in (
        (table.insert, batch(3, "c")),
        (table.bulk_insert, batch(3, "c")),
        (table.delete, batch(3, "a")),
        (table.insert_overwrite, batch(3, "c")),
        (table.insert_overwrite_table, batch(3, "c")),
        (table.delete_partitions, ["rome"]),
    ):
        with pytest.raises(CommitValidationError):
            write(given, **same)  # type: ignore[arg-type]
    assert agree(Path(table.path)) == rows
    table.upsert(batch(2, "a").append_column("note", pa.array(["n"])), **same)  # type: ignore[arg-type]
    assert agree(Path(table.path)) == rows


def test_a_function_sees_the_rows_to_come_and_the_commit(table: hudi.Table) -> None:
    seen: list[tuple[list[str], ProposedCommit]] = []

    def look(rows: HudiDataset, commit: ProposedCommit) -> None:
        assert rows.count_rows() == len(rows.to_table())
        seen.append((sorted(rows.to_table(["id"])["id"].to_pylist()), commit))
        assert rows.count_rows(pc.field("note") == "new") == 2
        assert rows.to_table(filter=pc.field("city") == "oslo")["id"].to_pylist().count("x") == 1

    rows = batch(3, "a", "n").append_column("note", pa.array(["new", "new"]))
    table.upsert(rows, validators=[look, lambda rows, commit: True])
    [(ids, commit)] = seen
    assert ids == ["a", "b", "n", "x", "y"] == sorted(table.to_arrow()["id"].to_pylist())
    assert (commit.operation, commit.inserted, commit.updated, commit.files) == ("UPSERT", 1, 1, 2)
    agree(Path(table.path))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (False, "it returned False"),
        (pa.scalar(False), "it returned False"),
        ([], "neither True, False nor None"),
        (ValueError("fares are odd"), "ValueError: fares are odd"),
    ],
)
def test_a_function_refuses(native: hudi.Table, answer: Any, reason: str) -> None:
    def odd(rows: HudiDataset, commit: ProposedCommit) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(CommitValidationError, match=reason) as caught:
        native.upsert(batch(3, "a"), validators=[odd])
    assert caught.value.facts["validator"] == "odd"
    assert caught.value.__cause__ is (answer if isinstance(answer, Exception) else None)
    assert native.upsert(batch(3, "a"), validators=[lambda rows, commit: None]).updated == 1


def test_it_may_only_warn(native: hudi.Table, caplog: pytest.LogCaptureFixture) -> None:
    options = {
        **asked(ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#4"),
        ValidatorsConfig.failure_policy.key: "WARN_LOG",
    }
    with caplog.at_level(logging.WARNING):
        native.upsert(batch(3, "c"), options=options)
    assert "it returns 5, not 4" in caplog.text
    assert native.count() == 5


def test_what_others_wrote_meanwhile_is_validated_too(table: hudi.Table) -> None:
    """Each write alone leaves five rows; both together leave six."""
    other, asked_for = hudi.Table.open(table.path), []

    def at_most_five(rows: HudiDataset, commit: ProposedCommit) -> bool:
        asked_for.append(rows.count_rows())
        if len(asked_for) == 1:
            other.bulk_insert(batch(3, "z"), options=together)
        return asked_for[-1] <= 5

    together = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    with pytest.raises(CommitValidationError):
        table.bulk_insert(batch(3, "c"), options=together, validators=[at_most_five])
    assert asked_for == [5, 6]
    assert sum(agree(Path(table.path)).values()) == 5


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({ValidatorsConfig.kinds.key: "com.acme.Check"}, "com.acme.Check is none of"),
        ({ValidatorsConfig.kinds.key: "equality"}, "equality has no query"),
        ({QUERIES[ValidatorKind.EQUALITY]: "from <TABLE_NAME>"}, "no validator runs it"),
        (asked(ValidatorKind.EQUALITY, "select 1"), "does not ask <TABLE_NAME>"),
        (asked(ValidatorKind.SINGLE_VALUE, "from <TABLE_NAME>"), "one # and the value"),
        (asked(ValidatorKind.SINGLE_VALUE, "from <TABLE_NAME>#1#2"), "one # and the value"),
        (asked(ValidatorKind.EQUALITY, "selekt * from <TABLE_NAME>"), "Parser Error"),
        (asked(ValidatorKind.EQUALITY, "select fare from <TABLE_NAME>"), "Binder Error"),
    ],
)
def test_what_cannot_be_validated_is_refused_before_a_file_is_written(
    native: hudi.Table, options: dict[str, str], reason: str
) -> None:
    everything = set(Path(native.path).rglob("*"))
    with pytest.raises(InvalidOptionError, match=reason):
        native.upsert(batch(3, "a"), options=options)
    assert {one for one in Path(native.path).rglob("*") if ".locks" not in one.parts} <= everything


def test_without_duckdb_the_package_is_named(
    native: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = asked(ValidatorKind.EQUALITY, "select count(*) from <TABLE_NAME>")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InvalidOptionError, match=r"pip install hudi-core\[validators\]"):
        native.upsert(batch(3, "a"), options=options)
    native.upsert(batch(3, "a"), validators=[lambda rows, commit: True])


def test_a_new_table_whose_rows_are_refused_is_dropped(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        **asked(ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#1"),
    }
    with pytest.raises(CommitValidationError):
        hudi.write(batch(1, "a", "b"), path, options=options)
    assert not (Path(path) / ".hoodie/hoodie.properties").exists()
    assert hudi.write(batch(1, "a"), path, options=options) is not None
    with pytest.raises(InvalidOptionError, match="insert_overwrite_table"):
        hudi.write(batch(1, "b"), path, mode="overwrite", options=options)
    assert hudi.Table.open(path).to_arrow()["id"].to_pylist() == ["a"]
