"""SQL in writes: parsed, computed as Spark does, and bounded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.sql import SqlLimits, options_of_properties
from hudi_core.config.write import WriteConfig
from hudi_core.errors import ExpressionLimitError, InvalidOptionError, SchemaError
from hudi_core.statements.running import parameters_of
from hudi_core.statements.words import Scanner, properties_of, spelled
from hudi_core.write.conditional.duckdb_text import DuckDb
from hudi_core.write.conditional.sql_text import (
    SqlText,
    TokenKind,
    Visible,
    plain_strings,
    quoted_string,
    tokens_of,
)
from tests.spark_values import ERRORS, REFUSED, ROW, VALUES, same
from tests.tables import copied, new_table

ROWS = pa.table({"id": [1, 2, 3, 4], "city": ["a", "b", "c", "d"], "v": [1.0, 2.0, 3.0, 4.0]})


class Opened(list[Any]):
    """The connections that were opened, and which of them are closed."""

    def none_is_open(self) -> bool:
        for one in self:
            try:
                one.execute("SELECT 1")
            except duckdb.Error:
                continue
            return False
        return True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    connect, found = duckdb.connect, Opened()

    def counted() -> Any:
        found.append(connect())
        return found[-1]

    monkeypatch.setattr(duckdb, "connect", counted)
    return found


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", new_table, ROWS)


def merged(table: hudi.Table) -> None:
    source = pa.table({"id": [1, 9], "city": ["a", "z"], "v": [10.0, 90.0]})
    (
        table.merge(source, on="source.id = target.id")
        .when_matched_update({"v": "source.v + target.v"})
        .when_not_matched_by_source_update({"v": "-1"}, "target.v > 2")
        .execute()
    )


def updated(table: hudi.Table) -> None:
    table.update({"v": "v + 1"}, where="id % 2 = 0")


def deleted(table: hudi.Table) -> None:
    table.delete(where="v * 2 > 5")


@pytest.mark.parametrize(
    ("change", "left"),
    [(merged, [-1.0, -1.0, 2.0, 11.0]), (updated, [1.0, 3.0, 3.0, 5.0]), (deleted, [1.0, 2.0])],
)
def test_a_write_opens_one_database_for_all_files(
    change: Callable[[hudi.Table], None], left: list[float], table: hudi.Table, opened: Opened
) -> None:
    change(table)
    assert sorted(table.to_arrow("v")["v"].to_pylist()) == left
    assert len(opened) == 1
    assert opened.none_is_open()


def test_it_is_closed_where_a_text_fails(table: hudi.Table, opened: Opened) -> None:
    with pytest.raises(SchemaError, match="cannot be computed"):
        table.update({"v": "9223372036854775807 + id"}, where="id = 3")
    assert len(opened) == 1
    assert opened.none_is_open()


def test_what_no_text_computes_opens_none(table: hudi.Table, opened: Opened) -> None:
    table.update({"v": 5.0}, where=[("id", "=", 1)])
    with DuckDb(SqlLimits()) as database:
        assert database.computed(ROWS, {}) is ROWS
    assert not opened


def test_it_sees_the_rows_of_the_text_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    outside = ROWS  # what a text of another connection would find by its name
    with DuckDb(SqlLimits()) as database:
        found = database.query("SELECT sum(v) AS s FROM rows", {"rows": outside})
        assert found.to_pylist() == [{"s": 10.0}]
        for text in (
            "SELECT * FROM outside",
            "SELECT * FROM rows",  # those of the text before
            f"SELECT * FROM '{tmp_path}/rows.csv'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(SchemaError, match="cannot be computed"):
                database.query(text, {})
        # one that failed leaves it as it was
        found = database.computed(ROWS, {"w": "v + 1", "zone": "current_setting('TimeZone')"})
        assert found["w"].to_pylist() == [2.0, 3.0, 4.0, 5.0]
        assert set(found["zone"].to_pylist()) == {"UTC"}


@pytest.mark.parametrize(
    ("where", "options", "named"),
    [
        ("repeat('x', 2000000000) = 'a'", {}, "more than 10,000,000 characters"),
        ("lpad(city, 2000000000, 'y') = 'a'", {}, "more than 10,000,000 characters"),
        ("(" * 3000 + "v" + ")" * 3000 + " = 1", {}, "nested too deeply"),
        ("NOT " * 5000 + "v = 1", {}, "nested too deeply"),
        (" + ".join(["v"] * 1500) + " = 1", {}, "nested too deeply"),
    ],
    ids=["repeat", "lpad", "parentheses", "not", "sum"],
)
def test_a_text_that_takes_too_much_is_refused(
    table: hudi.Table, where: str, options: dict[str, str], named: str
) -> None:
    with pytest.raises(ExpressionLimitError, match=named):
        table.delete(where=where, options=options)
    assert table.count() == 4
    assert len(table.history()) == 1


@pytest.mark.parametrize(
    ("value", "options", "named"),
    [
        ("len(generate_series(1, 2000000000, 2))", {}, "more than 10,000,000 characters"),
        (
            (
                "list_reduce(list_transform(generate_series(1, 999999), LAMBDA x : cos(x)), "
                "LAMBDA a, x : a + x, id)"
            ),
            {"hudi.sql.timeout": "1"},
            r"1 seconds.*hudi\.sql\.timeout",
        ),
    ],
    ids=["series", "time"],
)
def test_a_computation_that_takes_too_much_is_refused(
    value: str, options: dict[str, str], named: str
) -> None:
    with (
        DuckDb(SqlLimits.from_options(options)) as database,
        pytest.raises(ExpressionLimitError, match=named),
    ):
        database.computed(pa.concat_tables([ROWS] * 8), {"w": value})


def test_deep_values_and_conditions_of_merges_are_refused(table: hudi.Table) -> None:
    deep, arrow = " + ".join(["target.v"] * 1500), pc.field("v")
    for _ in range(3000):
        arrow = arrow + 1
    merge = table.merge(ROWS, f"target.id = source.id AND {deep} = 1")
    with pytest.raises(ExpressionLimitError, match="nested too deeply"):
        merge.when_matched_update_all().execute()
    # Arrow's threads would die of it, and the process with them
    with pytest.raises(SchemaError, match=r"3,000 calls, and 2,000 is the most"):
        table.update({"v": arrow}, where="id = 1")
    with pytest.raises(SchemaError, match=r"3,000 calls, and 2,000 is the most"):
        table.merge(ROWS, "id").when_matched_update({"v": arrow}).execute()
    assert len(table.history()) == 1


def test_many_conditions_are_no_deep_text(table: hudi.Table) -> None:
    table.delete(where=" OR ".join(f"id = {number} AND v > 1" for number in range(500)))
    assert table.to_arrow("id")["id"].to_pylist() == [1]


def test_limits_that_are_none_are_refused_by_name(table: hudi.Table) -> None:
    for option in ({"hudi.sql.timeout": "soon"}, {"hudi.sql.memory.limit": "much"}):
        with pytest.raises(InvalidOptionError, match=next(iter(option))):
            table.delete(where="v = 1", options=option)


def test_a_query_gets_so_much_memory_and_no_disk() -> None:
    limits = SqlLimits.from_options({"hudi.sql.memory.limit": "5MB"})
    rows = pa.table({"id": range(1_000_000)})
    with DuckDb(limits) as database:
        text = "SELECT count(*) AS n FROM (SELECT DISTINCT id FROM rows)"
        with pytest.raises(ExpressionLimitError, match=r"5MB.*hudi\.sql\.memory\.limit"):
            database.query(text, {"rows": rows})
        assert database.query(text, {"rows": rows.slice(0, 10)}).to_pylist() == [{"n": 10}]


# --- expressions in this process have the values that Spark gives them, or are refused
def computed(database: DuckDb, *texts: str) -> list[Any]:
    visible = Visible(ROW.schema, {"": ""})
    columns = {
        f"c{number}": SqlText.parse(text, visible).sql("duckdb")
        for number, text in enumerate(texts)
    }
    [row] = database.computed(ROW, columns).select(list(columns)).to_pylist()
    return list(row.values())


def test_values_are_those_of_spark() -> None:
    with DuckDb(SqlLimits()) as database:
        found = computed(database, *(text for text, _ in VALUES))
    wrong = [
        (text, value, wanted)
        for (text, wanted), value in zip(VALUES, found, strict=True)
        if not same(value, wanted)
    ]
    assert not wrong


def test_what_is_an_error_in_spark_is_one_here_and_what_differs_is_refused() -> None:
    with DuckDb(SqlLimits()) as database:
        for text, said in (*((text, None) for text in ERRORS), *REFUSED):
            with pytest.raises(SchemaError, match=said):
                computed(database, text)


# --- statements as words: what is recognised, and what goes to Spark as it is written
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.`b c`.`d``e`", ["a", ".", "b c", ".", "d`e"]),
        ("'it''s' \"q\\\"x\" r'\\d' 'a\\tb\\u0041\\101\\%'", ["it's", 'q"x', "\\d", "a\tbAA\\%"]),
        ("-- a; 'b\nx /* ; /* within */ \" */ y", ["x", "y"]),
        ("1L 2.5BD 1e5 2020_t 1abc .5", ["1L", "2.5BD", "1e5", "2020_t", "1abc", ".", "5"]),
        ("a=>1, b::int <=> c", ["a", "=>", "1", ",", "b", "::", "int", "<=>", "c"]),
        ("é😀 $x {y}", ["é", "😀", "$", "x", "{", "y", "}"]),
        ("'not closed x", ["'", "not", "closed", "x"]),
        ("/* not closed", []),
    ],
)
def test_tokens(text: str, found: list[str]) -> None:
    assert [one.value for one in tokens_of(text)] == found
    for one in tokens_of(text):
        assert text[one.start : one.end] == one.text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a LIKE '%''%' -- it''s", r"a LIKE '%\'%' -- it''s"),
        ('f("a""b", `c""d`)', 'f(\'a"b\', `c""d`)'),
        (r"r'\d+' || '\u0041\_'", r"'\\d+' || 'A\\_'"),
        (r"X'61' 'it\'s' DATE'2020-01-01'", r"X'61' 'it\'s' DATE'2020-01-01'"),
    ],
)
def test_strings_mean_to_sqlglot_what_they_mean_to_spark(text: str, plain: str) -> None:
    assert plain_strings(text) == plain
    assert plain_strings(plain) == plain


def test_a_scanner_goes_past_what_it_knows() -> None:
    text = "INSERT INTO `a b`.t PARTITION (x = f(1, ')'), y) /* ; */ SELECT ';' -- ;\n;;"
    scanner = Scanner(text)
    assert not scanner.take("INSERT", "OVERWRITE")
    assert scanner.take("INSERT", "INTO|OVERWRITE")
    assert scanner.name() == ("a b", "t")
    assert scanner.take("PARTITION")
    inner = scanner.group()
    assert inner == "x = f(1, ')'), y"
    assert Scanner(inner).items() == ["x = f(1, ')')", "y"]
    assert scanner.rest() == "SELECT ';'"
    assert scanner.is_at_end
    assert Scanner("(a").group() is None
    assert Scanner("a.").name() is None
    several = Scanner("DELETE FROM t; SELECT 1")
    assert several.rest() == "DELETE FROM t"
    assert not several.is_at_end


def test_only_what_is_looked_at_is_read() -> None:
    # a long list of values that is none of ours is handed on, not taken apart
    scanner = Scanner("INSERT INTO t VALUES " + "(1), " * 100_000)
    assert scanner.take("INSERT", "INTO")
    assert scanner.name() == ("t",)
    assert len(scanner._seen) < 10


def test_properties() -> None:
    text = "primaryKey ='uuid', hoodie.a.b = \"X\", 'c d' = true, e=-10, f 'g' 'h', k"
    assert properties_of(text) == {
        "primaryKey": "uuid",
        "hoodie.a.b": "X",
        "c d": "true",
        "e": "-10",
        "f": "gh",
        "k": "",
    }
    assert properties_of("a = current_date()") is None
    assert properties_of("a = 1 + 2") is None


def test_literals_and_names_are_read_back() -> None:
    for text in ("it's", "a\\b", "\\'", "", "é\n"):
        [token] = tokens_of(quoted_string(text))
        assert (token.kind, token.value) == (TokenKind.STRING, text)
    assert Scanner(spelled(["a`b", "c.d"])).name() == ("a`b", "c.d")


def test_parameters_are_marks_beside_a_name() -> None:
    text = "SET a = :x, b = CAST(c AS STRUCT<d: INT>), e::int, f = ':y' WHERE g = :x AND h=:z"
    assert [name for _, name in parameters_of(text)] == ["x", "x", "z"]


def test_short_words_of_properties_are_options() -> None:
    properties = {
        "primaryKey": "id",
        "precombinefield": "ts",
        "option.type": "cow",
        "payloadClass": "x",
        "note": "y",
        "owner": "me",
        "hoodie.keep.max.commits": "40",
        "hoodie.query.as.ro.table": "false",
        "fs.s3a.endpoint": "http://x",
    }
    assert options_of_properties(properties) == {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.datasource.write.payload.class": "x",
        "hoodie.keep.max.commits": "40",
        "fs.s3a.endpoint": "http://x",
    }
    assert options_of_properties({"type": "MOR"}).popitem()[1] == "MERGE_ON_READ"


def test_an_operation_does_not_overwrite_more_than_its_partitions() -> None:
    key = "hoodie.datasource.overwrite.mode"
    WriteConfig.from_options({key: "dynamic"})
    with pytest.raises(InvalidOptionError, match=r"INSERT OVERWRITE by hudi\.sql"):
        WriteConfig.from_options({key: "STATIC"})
