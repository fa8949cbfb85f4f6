"""Tables without a record key: keys are generated.

Every new row gets a key of its own, and only rows that bring the key they were read with are looked
up.

Source: Hudi's ``AutoRecordGenWrapperKeyGenerator`` and ``HoodieCreateRecordUtils``. The keys are
made with the meta columns, see :func:`hudi_core.rows.meta_columns.with_meta_columns`.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_core.config.kinds import InsertDuplicates
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import InvalidOptionError, RecordKeyError
from hudi_core.keygen import brings_keys
from hudi_core.model.operation import INSERT, UPSERT, Operation
from hudi_core.schema.table_schema import PARTITION_PATH, RECORD_KEY


def default_operation(config: TableConfig, names: list[str]) -> Operation:
    """Operation of a write that names none.

    ``names`` include meta columns.
    """
    has_keys = config.record_key_fields or brings_keys(config, names)
    return UPSERT if has_keys else INSERT


def write_config_for(
    table: TableConfig, config: WriteConfig, operation: Operation, names: list[str]
) -> WriteConfig:
    """Return a write's options for a table, keyless ones included.

    ``names`` include meta columns. Operations that look rows up by key, and options that compare
    keys, are refused for a keyless table.
    """
    if table.record_key_fields:
        return config
    if operation.by_key:
        if brings_keys(table, names):
            return config
        raise RecordKeyError(
            f"The table has no record key, so its rows cannot be {operation.participle} by "
            "columns of their own",
            f"Read the rows from the table, change them, and write them with their columns "
            f"{RECORD_KEY} and {PARTITION_PATH}; or use insert, bulk_insert, insert_overwrite or "
            "delete_partitions, or copy the rows into a table that is created with a record key.",
            operation=operation.recorded,
        )
    for key, value, is_asked in (
        (WriteConfig.combine_before_insert, "true", config.combine_before_insert),
        (
            WriteConfig.insert_duplicates,
            config.insert_duplicates.value,
            config.insert_duplicates is not InsertDuplicates.NONE,
        ),
    ):
        if is_asked:
            raise InvalidOptionError(
                key.key,
                value,
                "the table has no record key, so no two rows have the same",
                "Drop the option.",
            )
    # generated keys never meet
    return replace(config, allow_duplicate_on_insert=True)
