"""Databases, tables and partitions of a Hive metastore, by its Thrift interface."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hudi_core.errors import MetastoreError, MetastoreRefusalError
from hudi_core.metastore.catalog import MetastoreColumn, MetastorePartition, MetastoreTable
from hudi_core.metastore.hive_structs import HIVE
from hudi_core.metastore.thrift_calls import Connection, Failures, addresses_of

_ANSWER_S: Final = 60.0
_ERRORS: Final = 4
"""How many errors a method may declare."""

Arguments = Mapping[str, object]
"""Values by types and names."""


class HiveMetastore:
    """A Hive metastore, over one connection.

    It is opened with the first call.

    A call that fails closes the connection; the next one opens another.
    """

    def __init__(self, uris: Sequence[str], timeout_s: float = _ANSWER_S) -> None:
        self._uris, self._timeout_s = tuple(uris), timeout_s
        self._connection: Connection | None = None
        self._is_interrupted = False
        self._lock = threading.RLock()

    def databases(self) -> list[str]:
        """See :meth:`Metastore.databases`."""
        names: list[str] = self.call("get_all_databases", {}, "list<string>")
        return sorted(names)

    def tables(self, database: str) -> list[str]:
        """See :meth:`Metastore.tables`."""
        arguments = {"string db_name": database}
        names: list[str] = self.call("get_all_tables", arguments, "list<string>")
        return sorted(names)

    def table(self, database: str, name: str) -> MetastoreTable | None:
        """See :meth:`Metastore.table`."""
        asked = of_table(database, name)
        found = self.call("get_table", asked, "Table", lacks=2)
        return None if found is None else table_of(found)

    def partition_names(self, database: str, table: str) -> list[str]:
        """See :meth:`Metastore.partition_names`."""
        arguments = {**of_table(database, table), "i16 max_parts": -1}
        found: list[str] = self.call("get_partition_names", arguments, "list<string>")
        return found

    def partitions(
        self, database: str, table: str, names: Sequence[str]
    ) -> list[MetastorePartition]:
        """See :meth:`Metastore.partitions`."""
        arguments = {**of_table(database, table), "list<string> names": list(names)}
        found = self.call("get_partitions_by_names", arguments, "list<Partition>")
        return list(map(partition_of, found))

    def interrupt(self) -> None:
        """See :meth:`Metastore.interrupt`; later calls fail as well."""
        with self._lock:
            self._is_interrupted = True
            if self._connection is not None:
                self._connection.interrupt()

    def close(self) -> None:
        """Give up the connection; the next call opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
            self._is_interrupted = False
        if connection is not None:
            connection.close()

    def call(
        self,
        method: str,
        arguments: Arguments,
        success: str | None,
        *,
        lacks: int = 0,
        refuses: Collection[int] = (),
    ) -> Any:
        """The result of a method.

        ``success`` is the type of the result; ``None`` for a method without one.
        ``lacks`` is the number of the error "is missing" or "exists already": the result is
        ``None`` then. ``refuses`` are errors that a retry does not help.
        """
        request, answer = HIVE.request(method, arguments), HIVE.answer(method, success, _ERRORS)
        with self._translated(method):
            result = self._connected().call(method, request, answer)
        if result.success is not None:
            return result.success
        errors = {number: getattr(result, f"o{number}") for number in range(1, _ERRORS + 1)}
        failed = [number for number, error in errors.items() if error is not None]
        if (not failed and success is None) or lacks in failed:
            return None
        reason = "; ".join(errors[number].message or "" for number in failed) or "no answer"
        raised = MetastoreRefusalError if set(failed) & set(refuses) else MetastoreError
        raise raised(self._uris, f"{method}: {reason}")

    def _connected(self) -> Connection:
        with self._lock:
            is_interrupted, connection = self._is_interrupted, self._connection
        if connection is None and not is_interrupted:
            connection = Connection(addresses_of(self._uris), self._timeout_s)
            with self._lock:
                self._connection, is_interrupted = connection, self._is_interrupted
        if connection is None or is_interrupted:
            raise OSError("it was interrupted")
        return connection

    @contextmanager
    def _translated(self, method: str) -> Iterator[None]:
        try:
            yield
        except Failures as error:
            with self._lock:
                connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
            raise MetastoreError(self._uris, f"{method}: {error}") from error


def of_table(database: str, name: str) -> dict[str, object]:
    """The arguments that name a table."""
    return {"string db_name": database, "string tbl_name": name}


def partition_of(found: Any) -> MetastorePartition:
    """A partition as the metastore describes it."""
    return MetastorePartition(tuple(found.values or ()), _text(found.sd, "location"))


def table_of(found: Any) -> MetastoreTable:
    """A table as the metastore describes it."""
    place = found.sd
    serde = None if place is None else place.serdeInfo
    return MetastoreTable(
        database=found.dbName or "",
        name=found.tableName or "",
        location=_text(place, "location"),
        table_type=found.tableType or "",
        input_format=_text(place, "inputFormat"),
        columns=_columns(None if place is None else place.cols),
        partition_columns=_columns(found.partitionKeys),
        parameters=_parameters(found),
        serde_parameters=_parameters(serde),
        output_format=_text(place, "outputFormat"),
        serde=_text(serde, "serializationLib"),
    )


def _text(found: Any, name: str) -> str:
    return "" if found is None else getattr(found, name) or ""


def _parameters(found: Any) -> Mapping[str, str]:
    return {} if found is None else dict(found.parameters or {})


def _columns(found: Sequence[Any] | None) -> tuple[MetastoreColumn, ...]:
    return tuple(
        MetastoreColumn(one.name or "", one.type or "", one.comment) for one in found or ()
    )
