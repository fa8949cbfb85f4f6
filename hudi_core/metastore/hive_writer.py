"""Entries of a Hive metastore, made and changed by its Thrift interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from getpass import getuser
from typing import Any, Final

from hudi_core.metastore.catalog import (
    MetastoreColumn,
    MetastorePartition,
    MetastoreTable,
    batches,
)
from hudi_core.metastore.hive import HiveMetastore, of_table
from hudi_core.metastore.hive_structs import (
    NOTHING,
    Additions,
    Column,
    Context,
    Database,
    Descriptor,
    Entry,
    Part,
    Removals,
    Removed,
    Serde,
)
from hudi_core.storage.location import parse_location
from hudi_core.storage.partition_path import DEFAULT_PARTITION, PartitionPathCodec

_ANSWER_S: Final = 600.0
"""As long as Hive's own clients wait: a thousand partitions take a small metastore a minute."""
_FOR_PARTITIONS_TOO: Final = {"CASCADE": "true"}


class HiveWriter:
    """Changes entries of a Hive metastore, over one connection."""

    def __init__(self, uris: Sequence[str], batch: int) -> None:
        self._metastore = HiveMetastore(uris, _ANSWER_S)
        self._uris, self._batch = tuple(uris), batch

    @property
    def address(self) -> str:
        """See :attr:`MetastoreWriter.address`."""
        return ",".join(self._uris)

    def place(self, uri: str) -> str:
        """See :meth:`MetastoreWriter.place`."""
        # as Hadoop's paths have it: nothing is escaped
        place = parse_location(uri)
        return f"file://{place.uri}" if place.is_local else uri

    def has_database(self, name: str) -> bool:
        """See :meth:`MetastoreWriter.has_database`."""
        return name.lower() in self._metastore.databases()

    def create_database(self, name: str) -> None:
        """See :meth:`MetastoreWriter.create_database`."""
        made = Database(name=name, description="made by a sync of hudi-core")
        arguments = {"Database database": made}
        self._metastore.call("create_database", arguments, None, lacks=1, refuses=(2,))

    def table(self, database: str, name: str) -> MetastoreTable | None:
        """See :meth:`MetastoreWriter.table`."""
        return self._metastore.table(database, name)

    def create_table(self, table: MetastoreTable) -> None:
        """See :meth:`MetastoreWriter.create_table`."""
        entry = _changed(Entry(owner=_user()), table)
        self._metastore.call("create_table", {"Table tbl": entry}, None, refuses=(1, 2, 4))

    def change_table(
        self,
        before: MetastoreTable,
        after: MetastoreTable,
        *,
        with_partitions: bool = False,
        compared: str | None = None,
    ) -> None:
        """See :meth:`MetastoreWriter.change_table`."""
        named = of_table(before.database, before.name)
        found = self._metastore.call("get_table", named, "Table")
        properties = dict(_FOR_PARTITIONS_TOO) if with_partitions else {}
        if compared is not None and compared in before.parameters:
            # the metastore compares it within the change (HIVE-26882)
            properties["expected_parameter_key"] = compared
            properties["expected_parameter_value"] = before.parameters[compared]
        context = Context(properties=properties)
        arguments = {
            **named,
            "Table new_tbl": _changed(found, after),
            "EnvironmentContext environment_context": context,
        }
        method = "alter_table_with_environment_context"
        self._metastore.call(method, arguments, None, refuses=(1,))

    def drop_table(self, database: str, name: str) -> None:
        """See :meth:`MetastoreWriter.drop_table`."""
        arguments = {**of_table(database, name), "bool deleteData": False}
        self._metastore.call("drop_table", arguments, None, lacks=1)

    def all_partitions(self, table: MetastoreTable) -> list[MetastorePartition]:
        """See :meth:`MetastoreWriter.all_partitions`."""
        names = self._metastore.partition_names(table.database, table.name)
        return self._named(table, names)

    def find_partitions(
        self, table: MetastoreTable, values: Sequence[Sequence[str]]
    ) -> list[MetastorePartition]:
        """See :meth:`MetastoreWriter.find_partitions`."""
        return self._named(table, [_name(table, one) for one in values])

    def add_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """See :meth:`MetastoreWriter.add_partitions`."""
        for some in batches(partitions, self._batch):
            request = Additions(
                dbName=table.database,
                tblName=table.name,
                parts=[_part(table, one) for one in some],
                ifNotExists=True,
                needResult=False,
            )
            arguments = {"AddPartitionsRequest request": request}
            self._metastore.call("add_partitions_req", arguments, NOTHING, refuses=(1, 2))

    def change_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """See :meth:`MetastoreWriter.change_partitions`."""
        for some in batches(partitions, self._batch):
            parts = [_part(table, one) for one in some]
            arguments = {**of_table(table.database, table.name), "list<Partition> new_parts": parts}
            self._metastore.call("alter_partitions", arguments, None, refuses=(1,))

    def drop_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """See :meth:`MetastoreWriter.drop_partitions`."""
        for some in batches(partitions, self._batch):
            request = Removals(
                dbName=table.database,
                tblName=table.name,
                parts=Removed(names=[_name(table, one.values) for one in some]),
                deleteData=False,
                ifExists=True,
                needResult=False,
            )
            arguments = {"DropPartitionsRequest req": request}
            self._metastore.call("drop_partitions_req", arguments, NOTHING)

    def close(self) -> None:
        """See :meth:`MetastoreWriter.close`."""
        self._metastore.close()

    def _named(self, table: MetastoreTable, names: Sequence[str]) -> list[MetastorePartition]:
        return [
            one
            for some in batches(names, self._batch)
            for one in self._metastore.partitions(table.database, table.name, some)
        ]


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return "hudi"


def _name(table: MetastoreTable, values: Sequence[str]) -> str:
    """A partition as Hive names it."""
    fields = [column.name for column in table.partition_columns]
    known = [None if value == DEFAULT_PARTITION else value for value in values]
    return PartitionPathCodec(fields, hive_style=True, url_encode=True).encode(known)


def _columns(columns: Sequence[MetastoreColumn]) -> list[Any]:
    return [Column(name=one.name, type=one.type, comment=one.comment) for one in columns]


def _described(found: Any, table: MetastoreTable, location: str) -> Any:
    """A descriptor with what a table's entry says."""
    found.cols, found.location = _columns(table.columns), location
    found.inputFormat, found.outputFormat = table.input_format, table.output_format
    parameters: Mapping[str, str] = table.serde_parameters
    found.serdeInfo = Serde(serializationLib=table.serde, parameters=dict(parameters))
    return found


def _changed(entry: Any, table: MetastoreTable) -> Any:
    """An entry with what these values say, and all else of it."""
    entry.dbName, entry.tableName = table.database, table.name
    entry.sd = _described(entry.sd or Descriptor(), table, table.location)
    entry.partitionKeys = _columns(table.partition_columns)
    entry.parameters, entry.tableType = dict(table.parameters), table.table_type
    return entry


def _part(table: MetastoreTable, partition: MetastorePartition) -> Any:
    return Part(
        values=list(partition.values),
        dbName=table.database,
        tableName=table.name,
        sd=_described(Descriptor(), table, partition.location),
        parameters={},
    )
