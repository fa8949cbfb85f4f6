"""The properties of tables that Apache Hudi wrote: parsed, verified, and written back equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.config.properties import (
    CHECKSUM_KEY,
    format_properties,
    parse_properties,
    require_whole_properties,
    table_checksum,
)
from hudi_core.config.stored_table import properties_of, stored_config
from hudi_core.config.support import require_readable_table, require_writable_table
from hudi_core.config.table import KeyGeneratorType, MergeMode, TableConfig, TableType
from hudi_core.errors import UnsupportedTableError
from tests.hudi_tables import (
    ALL,
    COMPLEX,
    NO_METADATA,
    TIMESTAMP,
    TXNS,
    VERSION_6,
    WITH_METADATA,
    RealTables,
)


def _property_files(table: Path) -> list[Path]:
    return sorted(table.glob("**/.hoodie/hoodie.properties"))


@pytest.mark.parametrize("name", ALL)
def test_properties_are_whole_and_written_back_equal(name: str, real_tables: RealTables) -> None:
    files = _property_files(real_tables(name))
    assert len(files) == (2 if name in WITH_METADATA else 1)
    for file in files:
        data = file.read_bytes()
        properties = parse_properties(data, str(file))
        require_whole_properties(data, properties, str(file))
        database = properties.get("hoodie.database.name")
        assert properties[CHECKSUM_KEY] == str(
            table_checksum(database, properties["hoodie.table.name"])
        )
        again = format_properties(properties)
        assert parse_properties(again) == properties
        # Java escapes the same characters: the lines are equal, comments and order aside
        lines = [line for line in data.splitlines() if not line.startswith(b"#")]
        assert sorted(again.splitlines()) == sorted(lines)


@pytest.mark.parametrize("name", ALL)
def test_typed_view_keeps_every_property(name: str, real_tables: RealTables) -> None:
    for file in _property_files(real_tables(name)):
        properties = parse_properties(file.read_bytes())
        config = stored_config(properties, str(file))
        assert properties_of(config) == properties
        assert config.raw == properties


def _config(table: Path) -> TableConfig:
    file = table / ".hoodie" / "hoodie.properties"
    return stored_config(parse_properties(file.read_bytes()), str(file))


def test_version_6(real_tables: RealTables) -> None:
    config = _config(real_tables(VERSION_6[1]))
    assert (config.version, config.layout_version, config.table_type) == (
        6,
        1,
        TableType.COPY_ON_WRITE,
    )
    assert config.record_key_fields == ("id",)
    assert config.partition_fields == ("byteField",)
    assert config.keygen_type is KeyGeneratorType.SIMPLE
    assert config.ordering_fields == ("longField",)
    assert config.merge_mode is MergeMode.EVENT_TIME_ORDERING
    assert (config.hive_style, config.url_encode) == (False, False)
    assert config.archive_folder == "archived"
    assert config.timezone == "LOCAL"
    assert config.table_format == "native"


def test_version_8(real_tables: RealTables) -> None:
    config = _config(real_tables(COMPLEX))
    assert (config.version, config.initial_version, config.layout_version) == (8, 8, 2)
    assert (config.name, config.database) == ("v8_complexkeygen_hivestyle", "default")
    assert config.record_key_fields == ("id", "name")
    assert config.partition_fields == ("byteField", "shortField")
    assert config.keygen_type is KeyGeneratorType.COMPLEX
    assert config.hive_style
    assert config.create_schema is not None
    assert config.create_schema.startswith('{"type":"record"')
    require_writable_table(config, "t")


def test_version_9(real_tables: RealTables) -> None:
    config = _config(real_tables(TIMESTAMP))
    assert config.version == 9
    assert config.keygen_type is KeyGeneratorType.TIMESTAMP
    assert config.ordering_fields == ("txn_ts",)
    assert config.metadata_partitions == (
        "column_stats",
        "files",
        "partition_stats",
        "record_index",
    )
    require_readable_table(config, "t")


@pytest.mark.parametrize(("name", "partitions"), [(TXNS, 6), (NO_METADATA, 0)])
def test_tables_with_and_without_a_metadata_table_can_be_written(
    name: str, partitions: int, real_tables: RealTables
) -> None:
    config = _config(real_tables(name))
    assert len(config.metadata_partitions) == partitions
    require_writable_table(config, "t")


def test_what_cannot_be_written_is_named(real_tables: RealTables) -> None:
    table = real_tables(VERSION_6[0])
    with pytest.raises(UnsupportedTableError, match="version 6") as caught:
        require_writable_table(_config(table), str(table))
    assert caught.value.base_path == str(table)
