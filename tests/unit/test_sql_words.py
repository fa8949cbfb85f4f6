"""Statements as words: what is recognised, and what goes to Spark as it is written."""

from __future__ import annotations

import pytest

from hudi_core.config.sql import options_of_properties
from hudi_core.config.write import WriteConfig
from hudi_core.errors import InvalidOptionError
from hudi_core.statements.running import parameters_of
from hudi_core.statements.words import Scanner, properties_of, spelled
from hudi_core.write.sql_text import TokenKind, plain_strings, quoted_string, tokens_of


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
