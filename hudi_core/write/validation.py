"""Validators: checks of the state that a commit would publish.

They run before the table's lock is taken, so that no writer waits for them, and once more under the
lock where another write completed meanwhile: what they accept is what readers will see. Hudi runs
its own on the partitions that a write touches; these see the whole table, of which only the columns
and row groups that are asked for are read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_core.config.optional_libraries import require_library
from hudi_core.config.sql import SqlLimits
from hudi_core.config.validators import (
    TABLE_NAME,
    FailurePolicy,
    SqlCheck,
    ValidatorKind,
    ValidatorsConfig,
)
from hudi_core.errors import CommitValidationError, ExpressionLimitError, InvalidOptionError
from hudi_core.extension.guard import Raised, attempt
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import ProposedCommit
from hudi_core.read.plan import columns_read
from hudi_core.read.proposed import ProposedQuery
from hudi_core.read.query import SnapshotQuery
from hudi_core.schema.table_schema import TableSchema
from hudi_core.table_handle import OpenTable
from hudi_core.txn.schema_step import SchemaStep
from hudi_core.write.conditional.duckdb_text import closed_database, limited

_log = logging.getLogger(__name__)

Validator = Callable[[Any, ProposedCommit], Any]
"""Gets the rows as a :class:`~hudi_core.read.dataset.HudiDataset` as they would be after a commit,
and the commit; refuses it by returning ``False`` or raising."""

_BEFORE: Final = "state_before"
_AFTER: Final = "state_after"
_KEYS: Final = {
    ValidatorKind.EQUALITY: ValidatorsConfig.equality.key,
    ValidatorKind.INEQUALITY: ValidatorsConfig.inequality.key,
    ValidatorKind.SINGLE_VALUE: ValidatorsConfig.single_value.key,
}


@dataclass(frozen=True, slots=True)
class Validation:
    """The validators of one write."""

    config: ValidatorsConfig
    functions: Sequence[Validator] = ()
    limits: SqlLimits = field(default_factory=SqlLimits)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be validated."""
        return not (self.config.sql_checks or self.functions)

    def require_runnable(self, table: OpenTable, step: SchemaStep) -> None:
        """Refuse queries that cannot run on the table's columns."""
        if not self.config.sql_checks:
            return
        duckdb = _duckdb(self.config)
        with closed_database(duckdb, self.limits) as connection:
            for name, schema in ((_BEFORE, step.base), (_AFTER, step.new)):
                columns = columns_read(table.client.config, schema)
                connection.register(name, columns.empty_table())
            for check in self.config.sql_checks:
                is_single = check.kind is ValidatorKind.SINGLE_VALUE
                for name in (_AFTER,) if is_single else (_BEFORE, _AFTER):
                    try:
                        connection.execute(f"EXPLAIN {_query(check, name)}")
                    except duckdb.Error as error:
                        reason = str(error).split("\n", 1)[0]
                        raise InvalidOptionError(
                            _KEYS[check.kind], check.query, reason, "Put the query right."
                        ) from error

    def require_valid(
        self,
        table: OpenTable,
        seen: TimelineView,
        metadata: CommitMetadata,
        schema: TableSchema,
    ) -> None:
        """Refuse a commit that a validator refuses.

        ``schema`` is that after the commit. When it is refused, nothing has changed.
        """
        # pyarrow.dataset imports pandas, which takes longer than all of this project
        from hudi_core.read.dataset import HudiDataset  # noqa: PLC0415

        client, index = table.client, table.lister()
        after = HudiDataset(ProposedQuery(client, index, seen, metadata, schema))
        proposed = ProposedCommit.of(metadata)
        for function in self.functions:
            self._raise_or_warn(
                client.base_path, _name(function), _refusal(function, after, proposed)
            )
        if not self.config.sql_checks:
            return
        duckdb = _duckdb(self.config)
        before = HudiDataset(SnapshotQuery(client, index, seen))
        with closed_database(duckdb, self.limits) as connection:
            connection.register(_BEFORE, before)
            connection.register(_AFTER, after)
            for check in self.config.sql_checks:
                try:
                    with limited(connection, self.limits, check.query):
                        reason, cause = _result(connection, check), None
                except (duckdb.Error, ExpressionLimitError) as error:
                    reason, cause = str(error).split("\n", 1)[0], error
                self._raise_or_warn(client.base_path, check.query, (reason, cause))

    def _raise_or_warn(
        self, base_path: str, name: str, refusal: tuple[str | None, BaseException | None]
    ) -> None:
        reason, cause = refusal
        if reason is None:
            return
        if self.config.failure_policy is FailurePolicy.WARN_LOG:
            _log.warning("validator %r refuses a commit to %s: %s", name, base_path, reason)
            return
        raise CommitValidationError(base_path, name, reason) from cause


def _duckdb(config: ValidatorsConfig) -> Any:
    given = ValidatorsConfig.kinds.key, ",".join(kind.value for kind in config.kinds)
    return require_library("duckdb", "validators", given, "validators in SQL need duckdb")


def _query(check: SqlCheck, table: str) -> str:
    return check.query.replace(TABLE_NAME, table)


def _result(connection: Any, check: SqlCheck) -> str | None:
    """Why a query's result refuses a commit; ``None`` where it does not."""
    if check.kind is ValidatorKind.SINGLE_VALUE:
        return _value_refusal(connection, check)
    before, after = _query(check, _BEFORE), _query(check, _AFTER)
    gone, come = _surplus(connection, before, after), _surplus(connection, after, before)
    if check.kind is ValidatorKind.INEQUALITY:
        return None if gone or come else "its rows are the same before and after the commit"
    if not (gone or come):
        return None
    return f"{gone} of its rows before the commit are not there after it, and {come} come"


def _surplus(connection: Any, query: str, other: str) -> int:
    """How many rows of a query another one lacks."""
    # the new lines end a comment at the end of a query
    asked = f"select count(*) from ((\n{query}\n) except all (\n{other}\n))"  # noqa: S608 - it is SQL
    [(count,)] = connection.execute(asked).fetchall()
    return int(count)


def _value_refusal(connection: Any, check: SqlCheck) -> str | None:
    asked = f"select cast(columns(*) as varchar) from (\n{_query(check, _AFTER)}\n)"  # noqa: S608
    rows = connection.execute(asked).fetchmany(2)
    if len(rows) != 1 or len(rows[0]) != 1:
        return "it does not return one value"
    found, expected = rows[0][0], check.expected or ""
    if found is not None and (found == expected or _number(found) == _number(expected)):
        return None
    return f"it returns {'null' if found is None else found}, not {expected}"


def _number(text: str) -> Decimal | str:
    """A number however it is spelt; another text as it is."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _refusal(
    function: Validator, rows: Any, commit: ProposedCommit
) -> tuple[str | None, BaseException | None]:
    found = attempt(lambda: function(rows, commit))
    if isinstance(found, Raised):
        return found.reason, found.error
    answer = found.value.as_py() if isinstance(found.value, pa.Scalar) else found.value
    if answer is None or (isinstance(answer, bool | np.bool_) and answer):
        return None, None
    if isinstance(answer, bool | np.bool_):
        return "it returned False", None
    return f"it returned {answer!r}, which is neither True, False nor None", None


def _name(function: Validator) -> str:
    return str(getattr(function, "__name__", function))
