"""Entries of AWS Glue's data catalog, by boto3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from hudi_core.config.lock_servers import DynamoLockConfig
from hudi_core.config.options import Secret
from hudi_core.config.sync import GlueConfig
from hudi_core.errors import InvalidOptionError, MetastoreError, MetastoreRefusalError
from hudi_core.metastore.catalog import (
    MetastoreColumn,
    MetastorePartition,
    MetastoreTable,
    batches,
)
from hudi_core.storage.location import StoreKind, parse_location

_CONFIG: Final = Config(
    connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 5}
)
_MOST_ASKED: Final = 1000
_MOST_CHANGED: Final = 100
_MOST_DROPPED: Final = 25
"""Partitions that Glue takes in one call."""
_MISSING: Final = "EntityNotFoundException"
_EXISTS: Final = "AlreadyExistsException"
_REFUSALS: Final = frozenset(
    {_EXISTS, "InvalidInputException", "ConcurrentModificationException", "ValidationException"}
)
_KEPT: Final = ("Description", "Owner", "Retention", "TargetTable")
"""What is sent back of an entry beside what is changed."""


class GlueWriter:
    """Changes entries of a catalog of Glue."""

    def __init__(self, options: GlueConfig, keys: DynamoLockConfig, batch: int) -> None:
        self._options, self._batch = options, batch
        named = {
            "aws_access_key_id": keys.access_key,
            "aws_secret_access_key": keys.secret_key,
            "aws_session_token": keys.session_token,
        }
        with self._translated():
            try:
                self._glue = boto3.session.Session().client(
                    "glue",
                    region_name=options.region,
                    endpoint_url=options.endpoint_url,
                    config=_CONFIG,
                    **{name: _revealed(key) for name, key in named.items()},
                )
            except BotoCoreError:
                raise  # some of them are values too
            except ValueError as error:
                raise InvalidOptionError(
                    GlueConfig.endpoint_url.key,
                    str(options.endpoint_url),
                    f"boto3 takes it for no address: {error}",
                    "Name a host of letters, digits, dots and hyphens, or an address by numbers.",
                ) from error
        self._catalog = {"CatalogId": options.catalog_id} if options.catalog_id else {}

    @property
    def address(self) -> str:
        """See :attr:`MetastoreWriter.address`."""
        given = self._options
        return given.endpoint_url or f"AWS Glue{f' in {given.region}' if given.region else ''}"

    def place(self, uri: str) -> str:
        """See :meth:`MetastoreWriter.place`; readers of Glue know S3 by one scheme."""
        place = parse_location(uri)
        if place.kind is StoreKind.S3:
            return f"s3://{uri.partition('://')[2]}"
        return f"file://{place.uri}" if place.is_local else uri

    def has_database(self, name: str) -> bool:
        """See :meth:`MetastoreWriter.has_database`."""
        return self._call(self._glue.get_database, _MISSING, Name=name) is not None

    def create_database(self, name: str) -> None:
        """See :meth:`MetastoreWriter.create_database`."""
        made = {"Name": name, "Description": "made by a sync of hudi-core"}
        self._call(self._glue.create_database, _EXISTS, DatabaseInput=made)

    def table(self, database: str, name: str) -> MetastoreTable | None:
        """See :meth:`MetastoreWriter.table`."""
        found = self._found(database, name)
        return None if found is None else _table(found)

    def create_table(self, table: MetastoreTable) -> None:
        """See :meth:`MetastoreWriter.create_table`."""
        self._call(
            self._glue.create_table, DatabaseName=table.database, TableInput=_input(table, {})
        )

    def change_table(
        self,
        before: MetastoreTable,
        after: MetastoreTable,
        *,
        with_partitions: bool = False,
        compared: str | None = None,
    ) -> None:
        """See :meth:`MetastoreWriter.change_table`."""
        del compared
        found = self._found(before.database, before.name) or {}
        if with_partitions:
            # a sync that dies in between finds the former columns of the table, and does all again
            self.change_partitions(after, self.all_partitions(after))
        version = {"VersionId": before.version} if before.version is not None else {}
        self._call(
            self._glue.update_table,
            DatabaseName=before.database,
            TableInput=_input(after, found),
            SkipArchive=self._options.skips_archive,
            **version,
        )

    def drop_table(self, database: str, name: str) -> None:
        """See :meth:`MetastoreWriter.drop_table`."""
        self._call(self._glue.delete_table, _MISSING, DatabaseName=database, Name=name)

    def all_partitions(self, table: MetastoreTable) -> list[MetastorePartition]:
        """See :meth:`MetastoreWriter.all_partitions`."""
        pages = self._glue.get_paginator("get_partitions").paginate
        with self._translated():
            found = pages(**self._catalog, **_named(table), ExcludeColumnSchema=True)
            return [_partition(one) for page in found for one in page["Partitions"]]

    def find_partitions(
        self, table: MetastoreTable, values: Sequence[Sequence[str]]
    ) -> list[MetastorePartition]:
        """See :meth:`MetastoreWriter.find_partitions`."""
        found: list[MetastorePartition] = []
        for some in batches(values, _MOST_ASKED):
            asked = [{"Values": list(one)} for one in some]
            while asked:
                answer = self._call(
                    self._glue.batch_get_partition, **_named(table), PartitionsToGet=asked
                )
                found += map(_partition, answer["Partitions"])
                asked = answer.get("UnprocessedKeys", [])
        return found

    def add_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """See :meth:`MetastoreWriter.add_partitions`."""
        for some in batches(partitions, min(self._batch, _MOST_CHANGED)):
            made = [_partition_input(table, one) for one in some]
            self._batched(
                self._glue.batch_create_partition,
                _EXISTS,
                **_named(table),
                PartitionInputList=made,
            )

    def change_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """See :meth:`MetastoreWriter.change_partitions`."""
        for some in batches(partitions, min(self._batch, _MOST_CHANGED)):
            changes = [
                {
                    "PartitionValueList": list(one.values),
                    "PartitionInput": _partition_input(table, one),
                }
                for one in some
            ]
            self._batched(self._glue.batch_update_partition, "", **_named(table), Entries=changes)

    def drop_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """See :meth:`MetastoreWriter.drop_partitions`."""
        for some in batches(partitions, min(self._batch, _MOST_DROPPED)):
            gone = [{"Values": list(one.values)} for one in some]
            self._batched(
                self._glue.batch_delete_partition,
                _MISSING,
                **_named(table),
                PartitionsToDelete=gone,
            )

    def close(self) -> None:
        """See :meth:`MetastoreWriter.close`."""
        self._glue.close()

    def _found(self, database: str, name: str) -> Mapping[str, Any] | None:
        found = self._call(self._glue.get_table, _MISSING, DatabaseName=database, Name=name)
        return None if found is None else found["Table"]

    def _call(self, method: Callable[..., Any], passes: str = "", **arguments: Any) -> Any:
        """The answer of a method; ``None`` where it fails with one error."""
        with self._translated():
            try:
                return method(**self._catalog, **arguments)
            except ClientError as error:
                if _code(error) == passes:
                    return None
                raise

    def _batched(self, method: Callable[..., Any], passes: str, **arguments: Any) -> None:
        """Call a method whose answer lists what failed."""
        answer = self._call(method, **arguments)
        details = [one["ErrorDetail"] for one in answer.get("Errors", ())]
        failed = [one for one in details if one.get("ErrorCode") != passes]
        if failed:
            reason = f"{failed[0].get('ErrorCode')}: {failed[0].get('ErrorMessage')}"
            raise MetastoreError((self.address,), f"{len(failed)} partitions failed, {reason}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raised = MetastoreRefusalError if _code(error) in _REFUSALS else MetastoreError
            raise raised((self.address,), str(error)) from error
        except BotoCoreError as error:
            raise MetastoreError((self.address,), str(error)) from error


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def _revealed(key: Secret | None) -> str | None:
    return None if key is None else key.reveal()


def _named(table: MetastoreTable) -> dict[str, str]:
    return {"DatabaseName": table.database, "TableName": table.name}


def _column(column: MetastoreColumn) -> dict[str, str]:
    comment = {"Comment": column.comment} if column.comment else {}
    return {"Name": column.name, "Type": column.type, **comment}


def _columns(found: Sequence[Mapping[str, str]]) -> tuple[MetastoreColumn, ...]:
    return tuple(
        MetastoreColumn(one["Name"], one.get("Type", ""), one.get("Comment")) for one in found
    )


def _descriptor(table: MetastoreTable, location: str) -> dict[str, Any]:
    return {
        "Columns": [_column(one) for one in table.columns],
        "Location": location,
        "InputFormat": table.input_format,
        "OutputFormat": table.output_format,
        "SerdeInfo": {
            "SerializationLibrary": table.serde,
            "Parameters": dict(table.serde_parameters),
        },
    }


def _input(table: MetastoreTable, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: found[name] for name in _KEPT if name in found},
        "Name": table.name,
        "TableType": table.table_type,
        "Parameters": dict(table.parameters),
        "PartitionKeys": [_column(one) for one in table.partition_columns],
        "StorageDescriptor": _descriptor(table, table.location),
    }


def _partition_input(table: MetastoreTable, partition: MetastorePartition) -> dict[str, Any]:
    return {
        "Values": list(partition.values),
        "StorageDescriptor": _descriptor(table, partition.location),
    }


def _partition(found: Mapping[str, Any]) -> MetastorePartition:
    place = found.get("StorageDescriptor", {}).get("Location", "")
    return MetastorePartition(tuple(found["Values"]), place)


def _table(found: Mapping[str, Any]) -> MetastoreTable:
    place = found.get("StorageDescriptor", {})
    serde = place.get("SerdeInfo", {})
    return MetastoreTable(
        database=found["DatabaseName"],
        name=found["Name"],
        location=place.get("Location", ""),
        table_type=found.get("TableType", ""),
        input_format=place.get("InputFormat", ""),
        columns=_columns(place.get("Columns", ())),
        partition_columns=_columns(found.get("PartitionKeys", ())),
        parameters=found.get("Parameters", {}),
        serde_parameters=serde.get("Parameters", {}),
        output_format=place.get("OutputFormat", ""),
        serde=serde.get("SerializationLibrary", ""),
        version=found.get("VersionId"),
    )
