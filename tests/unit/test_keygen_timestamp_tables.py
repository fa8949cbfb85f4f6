"""What tables with partitions of timestamps make, refuse and store."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.stored_table import new_table_config, properties_of, stored_config
from hudi_core.config.support import require_readable_table, require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.errors import HudiError, InvalidOptionError, PartitionValueError, SchemaError
from hudi_core.keygen import bare_key_field, key_generator, require_key_columns
from hudi_core.schema.table_schema import TableSchema
from tests.unit.timestamp_tables import DAYS, PREFIX, generator, made, of_config, options, paths

# --- paths ---------------------------------------------------------------------


def test_hive_style_and_escaped_paths() -> None:
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    escaped = {"hoodie.datasource.write.partitionpath.urlencode": "true"}

    assert paths("SCALAR", "yyyy/MM/dd", [19737], **DAYS, **hive) == ["ts=2024/01/15"]
    assert paths("SCALAR", "yyyy/MM/dd", [19737], **DAYS, **escaped) == ["2024%2F01%2F15"]
    both = paths("SCALAR", "yyyy/MM/dd", [19737], **DAYS, **hive, **escaped)
    assert both == ["ts=2024%2F01%2F15"]


def test_each_path_is_in_the_dictionary_once() -> None:
    keygen = generator(options("UNIX_TIMESTAMP", "EEE"), pa.int64())
    batch = pa.record_batch(
        {"id": ["a"] * 15, "ts": [day * 86_400 for day in range(15)], "city": [None] * 15}
    )
    found = keygen.partition_paths(batch)
    assert len(found.dictionary) == 7
    assert found.to_pylist()[:7] == found.to_pylist()[7:14]
    assert keygen.record_keys(batch).to_pylist() == ["a"] * 15


def test_a_batch_without_rows() -> None:
    for kind, more in (("UNIX_TIMESTAMP", {}), ("DATE_STRING", {"inputs": "yyyy"})):
        assert paths(kind, "yyyy", [], **more) == []


def custom(fields: str, keys: str = "id", **more: str) -> TableConfig:
    given = options("UNIX_TIMESTAMP", "yyyy/MM/dd", **more)
    return new_table_config(
        {
            **given,
            "hoodie.datasource.write.keygenerator.type": "CUSTOM",
            "hoodie.datasource.write.partitionpath.field": fields,
            "hoodie.datasource.write.recordkey.field": keys,
        }
    )


@pytest.mark.parametrize(
    ("fields", "hive", "path"),
    [
        ("city:SIMPLE,ts:TIMESTAMP", "false", "Oslo/2024/01/15"),
        ("ts:timestamp,city:simple", "false", "2024/01/15/Oslo"),
        ("city:SIMPLE,ts:TIMESTAMP", "true", "city=Oslo/ts=2024/01/15"),
        ("ts:TIMESTAMP", "false", "2024/01/15"),
        ("city:SIMPLE", "false", "Oslo"),
        ("city:SIMPLE,ts:SIMPLE", "false", "Oslo/1705311000"),
    ],
)
def test_fields_of_their_own_kinds(fields: str, hive: str, path: str) -> None:
    config = custom(fields, **{"hoodie.datasource.write.hive_style_partitioning": hive})
    assert made(of_config(config, pa.int64()), [1705311000], pa.int64()) == [path]


def test_a_field_without_a_value_has_its_own_folder_or_that_of_1970() -> None:
    batch = pa.record_batch(
        {"id": ["a"], "ts": pa.nulls(1, pa.int64()), "city": pa.nulls(1, "str")}
    )
    keygen = of_config(custom("city:SIMPLE,ts:TIMESTAMP"), pa.int64())
    assert keygen.partition_paths(batch).to_pylist() == ["__HIVE_DEFAULT_PARTITION__/1970/01/01"]


def test_keys_of_a_custom_generator() -> None:
    batch = pa.record_batch({"id": ["a"], "ts": [0], "city": ["Oslo"]})
    one = custom("ts:TIMESTAMP")
    two = custom("ts:TIMESTAMP", keys="id,city")

    assert of_config(one, pa.int64()).record_keys(batch).to_pylist() == ["a"]
    assert of_config(two, pa.int64()).record_keys(batch).to_pylist() == ["id:a,city:Oslo"]
    assert (bare_key_field(one), bare_key_field(two)) == ("id", None)


# --- what is refused -----------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "more", "value", "words"),
    [
        ("UNIX_TIMESTAMP", {}, 1_705_311_000_000, "1705311000000.*ts.*1 to 9999.*seconds"),
        ("UNIX_TIMESTAMP", {}, 2**63 - 1, "years 1 to 9999"),
        ("EPOCHMILLISECONDS", {}, -62_135_596_800_001, "years 1 to 9999"),
        ("SCALAR", DAYS, 3_000_000, "counted in days"),
        ("SCALAR", {"unit": "DAYS", "arrow": pa.float64()}, 1e300, "years 1 to 9999"),
        ("SCALAR", {"unit": "DAYS", "arrow": pa.float64()}, float("inf"), "years 1 to 9999"),
        ("SCALAR", {"arrow": pa.decimal128(38, 0)}, Decimal(10**30), "too large for a timestamp"),
        ("DATE_STRING", {"inputs": "yyyy-MM-dd"}, "", "''.*not of the format 'yyyy-MM-dd'"),
        ("DATE_STRING", {"inputs": "yyyy-MM-dd"}, "2024-01-05 ", "not of the format"),
        ("DATE_STRING", {"inputs": "yyyy-MM-dd"}, "2024-02-30", "'2024-02-30', which is no date"),
        ("DATE_STRING", {"inputs": "yyyy-MM-dd"}, "2024-13-01", "which is no date"),
        ("DATE_STRING", {"inputs": "yyyy-MM-dd"}, "0-01-01", "which is no date"),
        ("DATE_STRING", {"inputs": "yyyyDDD"}, "2023366", "which is no date"),
        ("DATE_STRING", {"inputs": "yyyyMMdd"}, "202410", "not of the format"),
        ("DATE_STRING", {"inputs": "yyyy HH"}, "2024 24", "which is no date"),
        ("EPOCHMICROSECONDS", {}, 253_402_300_800_000_000, "years 1 to 9999"),
        ("EPOCHMICROSECONDS", {}, -62_135_596_800_000_001, "years 1 to 9999"),
        ("SCALAR", DAYS, 2_932_897, "years 1 to 9999"),
        ("SCALAR", DAYS, -719_163, "years 1 to 9999"),
        (
            "DATE_STRING",
            {"inputs": "yyyy-MM-dd HH:mm", "input_zone": "Europe/Berlin"},
            "2024-03-31 02:30",
            "'2024-03-31 02:30', which clocks of Europe/Berlin skip",
        ),
    ],
)
def test_values_that_are_no_moments(
    kind: str, more: dict[str, Any], value: Any, words: str
) -> None:
    with pytest.raises(PartitionValueError, match=words):
        paths(kind, "yyyy/MM/dd", [None, value], **more)


@pytest.mark.parametrize(
    ("kind", "arrow", "words"),
    [
        ("UNIX_TIMESTAMP", pa.string(), r"ts \(string\) are no numbers.*type=DATE_STRING"),
        ("UNIX_TIMESTAMP", pa.bool_(), r"ts \(bool\) are no numbers"),
        ("UNIX_TIMESTAMP", pa.time64("us"), r"ts \(time64\[us\]\) are no numbers"),
        ("UNIX_TIMESTAMP", pa.timestamp("us", "UTC"), "count MICROSECONDS, not SECONDS.*SCALAR"),
        ("EPOCHMILLISECONDS", pa.timestamp("us"), "time.unit=MICROSECONDS"),
        ("UNIX_TIMESTAMP", pa.date32(), "count DAYS, not SECONDS"),
        ("DATE_STRING", pa.int64(), r"ts \(int64\) are no strings"),
        ("MIXED", pa.date32(), r"ts \(date32\[day\]\) are no strings"),
    ],
)
def test_columns_that_do_not_fit_the_kind(kind: str, arrow: pa.DataType, words: str) -> None:
    config = new_table_config(options(kind, "yyyy", inputs="yyyy"))
    schema = TableSchema.create(pa.schema([("id", pa.string()), ("ts", arrow)]))
    with pytest.raises(SchemaError, match=words):
        require_key_columns(config, schema)
    if not pa.types.is_string(arrow):
        with pytest.raises(SchemaError, match=words):
            key_generator(config, schema)


def test_numbers_that_became_texts_are_taken_in_tables_that_are_there() -> None:
    """Spark SQL turns the column into texts when it updates rows of such a table."""
    values = ["1705311000", None, "-1"]
    found = paths("UNIX_TIMESTAMP", "yyyy/MM/dd", values, arrow=pa.string())
    assert found == ["2024/01/15", "1970/01/01", "1969/12/31"]
    for wrong in ("2024-01-15", "", "1.5", "9" * 19):
        with pytest.raises(PartitionValueError, match=f"'{wrong}'.*is no number"):
            paths("UNIX_TIMESTAMP", "yyyy", [None, wrong], arrow=pa.string())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({f"{PREFIX}output.dateformat": ""}, "output.dateformat=None .*missing"),
        ({f"{PREFIX}output.dateformat": "yyyy/QQ"}, "letter 'Q'"),
        ({f"{PREFIX}output.dateformat": "yyyyZ"}, "letter 'Z'"),
        ({f"{PREFIX}output.dateformat": "yyyy'T"}, "quote .* not closed"),
        ({f"{PREFIX}output.dateformat": "--"}, "has no field"),
        ({f"{PREFIX}output.dateformat": "y" * 257}, "at most 256"),
        ({f"{PREFIX}timestamp.type": "NANOS"}, "none of UNIX_TIMESTAMP, "),
        ({f"{PREFIX}timestamp.type": "DATE_STRING"}, "input.dateformat=None .*missing"),
        (
            {f"{PREFIX}timestamp.scalar.time.unit": "WEEKS", f"{PREFIX}timestamp.type": "SCALAR"},
            "Supported: NANOSECONDS",
        ),
        ({f"{PREFIX}output.timezone": "Mars/Base"}, "no such time zone"),
        ({f"{PREFIX}output.timezone": "../../etc/passwd"}, "no such time zone"),
        ({f"{PREFIX}output.timezone": "America"}, "no such time zone"),
        ({f"{PREFIX}output.timezone": "+08:00"}, "no such time zone"),
        ({f"{PREFIX}timezone": "GMT+24:00"}, "less than a day"),
        ({"hoodie.keygen.datetime.parser.class": "com.example.Parser"}, "no class is loaded"),
        (
            {
                f"{PREFIX}input.dateformat.list.delimiter.regex": "(a+)+$",
                f"{PREFIX}timestamp.type": "DATE_STRING",
            },
            "single character",
        ),
        ({"hoodie.datasource.write.recordkey.field": "id,city"}, "2 record key"),
        ({"hoodie.datasource.write.partitionpath.field": "ts,city"}, "2 partition fields"),
    ],
)
def test_settings_that_cannot_be_used(changes: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        new_table_config({**options("UNIX_TIMESTAMP", "yyyy"), **changes})


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("MM-dd", "no year"),
        ("yy-MM-dd", "two digits"),
        ("yyyy yyyy", "twice"),
        ("yyyy ZZZ", "names of zones"),
        ("yyyy EEE", "letter 'E'"),
        ("yyyy-MM-dd,", "has no field"),
    ],
)
def test_formats_that_cannot_be_read(inputs: str, words: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"input.dateformat.*{words}"):
        new_table_config(options("DATE_STRING", "yyyy", inputs=inputs))


# --- what is stored ------------------------------------------------------------


def test_a_table_stores_what_hudi_stores_and_its_zones() -> None:
    given = options("SCALAR", "yyyy/MM/dd", unit="days", output_zone="GMT+8")
    old = {
        name.replace("hoodie.keygen", "hoodie.deltastreamer.keygen"): given[name] for name in given
    }
    for each in (given, old):
        stored = properties_of(new_table_config(each))
        assert {name: stored[name] for name in stored if name.startswith(PREFIX)} == {
            f"{PREFIX}timestamp.type": "SCALAR",
            f"{PREFIX}timestamp.scalar.time.unit": "days",
            f"{PREFIX}output.dateformat": "yyyy/MM/dd",
            f"{PREFIX}output.timezone": "Etc/GMT-8",
            f"{PREFIX}input.timezone": "UTC",
        }
        assert stored["hoodie.table.keygenerator.type"] == "TIMESTAMP"
        again = stored_config(stored)
        assert again.time_based == new_table_config(each).time_based
        assert properties_of(again) == stored


def test_a_custom_generator_stores_its_fields_with_their_types() -> None:
    stored = properties_of(custom("city:simple, ts:Timestamp"))
    assert stored["hoodie.table.partition.fields"] == "city:SIMPLE,ts:TIMESTAMP"
    again = stored_config(stored)
    assert (again.partition_fields, again.partition_types) == (
        ("city", "ts"),
        ("SIMPLE", "TIMESTAMP"),
    )
    assert again == custom("city:SIMPLE,ts:TIMESTAMP")


def test_a_table_that_is_not_understood_is_read_and_not_written() -> None:
    stored = properties_of(new_table_config(options("UNIX_TIMESTAMP", "yyyy/MM/dd")))
    stored[f"{PREFIX}output.dateformat"] = "yyyy/QQ"
    config = stored_config(stored)

    assert config.time_based is None
    require_readable_table(config, "t")
    with pytest.raises(HudiError, match="letter 'Q'"):
        require_writable_table(config, "t")
    with pytest.raises(InvalidOptionError, match="does not record how"):
        of_config(config, pa.int64())
