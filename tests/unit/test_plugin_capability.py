"""What tables need of their format."""

from __future__ import annotations

import pytest

from hudi_core.config.kinds import KeyGeneratorType, TableType
from hudi_core.config.table import TableConfig
from hudi_core.errors import UnsupportedCapabilityError
from hudi_core.plugin.capability import Capability, FormatCapabilities, require, table_needs

PLAIN = {"name": "t", "record_key_fields": ("id",)}


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({}, (Capability.COPY_ON_WRITE, Capability.UNPARTITIONED)),
        (
            {"table_type": TableType.MERGE_ON_READ},
            (Capability.MERGE_ON_READ, Capability.UNPARTITIONED),
        ),
        (
            {"partition_fields": ("city",)},
            (Capability.COPY_ON_WRITE, Capability.IDENTITY_PARTITIONS),
        ),
        (
            {"partition_fields": ("ts",), "keygen_type": KeyGeneratorType.TIMESTAMP},
            (Capability.COPY_ON_WRITE, Capability.TRANSFORMED_PARTITIONS),
        ),
        (
            {"partition_fields": ("ts",), "keygen_type": KeyGeneratorType.CUSTOM},
            (Capability.COPY_ON_WRITE, Capability.TRANSFORMED_PARTITIONS),
        ),
        (
            {"populate_meta_fields": False, "drop_partition_columns": True},
            (
                Capability.COPY_ON_WRITE,
                Capability.UNPARTITIONED,
                Capability.VIRTUAL_KEYS,
                Capability.DROPPED_PARTITION_COLUMNS,
            ),
        ),
    ],
)
def test_needs_of_a_table(settings: dict[str, object], needs: tuple[Capability, ...]) -> None:
    assert table_needs(TableConfig(**{**PLAIN, **settings})) == needs  # type: ignore[arg-type]


def test_nothing_is_supported_that_is_not_declared() -> None:
    for capability in Capability:
        with pytest.raises(UnsupportedCapabilityError, match=f"support {capability.words}. Use"):
            require("test", FormatCapabilities(), [capability])
        require("test", FormatCapabilities.of(capability), [capability])


def test_everything_that_is_missing_is_named() -> None:
    declared = FormatCapabilities.of(Capability.COPY_ON_WRITE)
    with pytest.raises(UnsupportedCapabilityError) as caught:
        require("x", declared, [Capability.COPY_ON_WRITE, Capability.RESTORE, Capability.SAVEPOINT])
    assert caught.value.capability == "restore, savepoint"


def test_a_reason_is_told() -> None:
    declared = FormatCapabilities.of(
        Capability.COPY_ON_WRITE, reasons={Capability.RESTORE: "nothing is kept"}
    )
    with pytest.raises(UnsupportedCapabilityError, match=r"restore, because nothing is kept\. Use"):
        require("x", declared, [Capability.RESTORE])


def test_promotions_are_all_or_those_that_are_named() -> None:
    assert not FormatCapabilities().can_promote("int to long")
    assert FormatCapabilities.of(Capability.PROMOTE_TYPE).can_promote("int to long")
    some = FormatCapabilities.of(Capability.PROMOTE_TYPE, promotions=["int to long"])
    assert some.can_promote("int to long")
    assert not some.can_promote("float to double")


def test_declarations_iterate_in_the_order_of_the_enumeration() -> None:
    declared = FormatCapabilities.of(Capability.RESTORE, Capability.COPY_ON_WRITE)
    assert list(declared) == [Capability.COPY_ON_WRITE, Capability.RESTORE]
    assert Capability.CLUSTERING not in declared
