"""The builder of a merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_core.errors import InvalidOptionError
from hudi_core.model.result import CommitResult
from hudi_core.rows.changes import ChangeKind, Met
from hudi_core.write.conditional.expressions import Values, Where
from hudi_core.write.conditional.merge_changes import MergeChanges, When


@dataclass(frozen=True, slots=True)
class TableMerger:
    """A merge of a source into a table, clause by clause.

    Made by :meth:`hudi_core.table.Table.merge`. Each method returns a merger with one clause more;
    a row goes to the first of the clauses for such rows whose condition is true of it.
    :meth:`execute` does all in one commit.

    Values are given by column: a string is an expression in Spark's SQL, as ``"source.price"``; an
    Arrow expression is one over columns named ``target.price`` and ``source.price``; any other
    Python value is itself. Conditions are strings, Arrow expressions, or lists of conditions as of
    read filters.
    """

    _merge: MergeChanges
    _execute: Callable[[MergeChanges], CommitResult]

    def when_matched_update(self, updates: Values, predicate: Where | None = None) -> TableMerger:
        """Set columns of rows that a source row matches."""
        return self._with(When(Met.BOTH, ChangeKind.UPDATE, predicate, dict(updates)))

    def when_matched_update_all(
        self, predicate: Where | None = None, except_cols: Sequence[str] = ()
    ) -> TableMerger:
        """Set all columns that the source has to its values.

        Parameters
        ----------
        except_cols
            Columns of the source to leave out.
        """
        return self._with(
            When(Met.BOTH, ChangeKind.UPDATE, predicate, None, self._names(except_cols))
        )

    def when_matched_delete(self, predicate: Where | None = None) -> TableMerger:
        """Delete rows that a source row matches."""
        return self._with(When(Met.BOTH, ChangeKind.DELETE, predicate))

    def when_not_matched_insert(
        self, updates: Values, predicate: Where | None = None
    ) -> TableMerger:
        """Insert rows for source rows that match none."""
        return self._with(When(Met.SOURCE, ChangeKind.INSERT, predicate, dict(updates)))

    def when_not_matched_insert_all(
        self, predicate: Where | None = None, except_cols: Sequence[str] = ()
    ) -> TableMerger:
        """Insert source rows that match none, with all their columns.

        Parameters
        ----------
        except_cols
            Columns of the source to leave out.
        """
        return self._with(
            When(Met.SOURCE, ChangeKind.INSERT, predicate, None, self._names(except_cols))
        )

    def when_not_matched_by_source_update(
        self, updates: Values, predicate: Where | None = None
    ) -> TableMerger:
        """Set columns of rows that no source row matches."""
        return self._with(When(Met.TARGET, ChangeKind.UPDATE, predicate, dict(updates)))

    def when_not_matched_by_source_delete(self, predicate: Where | None = None) -> TableMerger:
        """Delete rows that no source row matches."""
        return self._with(When(Met.TARGET, ChangeKind.DELETE, predicate))

    def when_matched(self, predicate: Where | None = None) -> Matched:
        """A clause for matched rows: ``.update(...)``, ``.update_all()`` or ``.delete()``."""
        return Matched(self, predicate)

    def when_not_matched(self, predicate: Where | None = None) -> NotMatched:
        """A clause for source rows without a match: ``.insert(...)`` or ``.insert_all()``."""
        return NotMatched(self, predicate)

    def when_not_matched_by_source(self, predicate: Where | None = None) -> NotMatchedBySource:
        """A clause for rows that no source row matches: ``.update(...)`` or ``.delete()``."""
        return NotMatchedBySource(self, predicate)

    def execute(self) -> CommitResult:
        """Merge, in one commit.

        Raises
        ------
        MergeCardinalityError
            Several source rows would change one row of the table. Nothing is written.
        DuplicateRecordKeyError
            A row would be inserted whose key the table has. Nothing is written.
        SchemaError
            A condition or a value does not fit. Nothing is written.
        CommitConflictError
            Another write changed a file group that this one changes, or added one of its keys.
            Nothing of this one is visible; run it again.
        """
        if not self._merge.whens:
            raise InvalidOptionError(
                "merge", self._merge.on, "it has no clause", "Add one, such as when_matched_delete."
            )
        return self._execute(self._merge)

    def _with(self, when: When) -> TableMerger:
        return replace(self, _merge=replace(self._merge, whens=(*self._merge.whens, when)))

    @staticmethod
    def _names(columns: Sequence[str]) -> frozenset[str]:
        return frozenset([columns] if isinstance(columns, str) else columns)


@dataclass(frozen=True, slots=True)
class Matched:
    """A clause for rows that a source row matches."""

    _merger: TableMerger
    _predicate: Any

    def update(self, updates: Values) -> TableMerger:
        """Set columns."""
        return self._merger.when_matched_update(updates, self._predicate)

    def update_all(self, except_cols: Sequence[str] = ()) -> TableMerger:
        """Set all columns that the source has."""
        return self._merger.when_matched_update_all(self._predicate, except_cols)

    def delete(self) -> TableMerger:
        """Delete the rows."""
        return self._merger.when_matched_delete(self._predicate)


@dataclass(frozen=True, slots=True)
class NotMatched:
    """A clause for source rows that match none."""

    _merger: TableMerger
    _predicate: Any

    def insert(self, values: Values) -> TableMerger:
        """Insert rows with some columns."""
        return self._merger.when_not_matched_insert(values, self._predicate)

    def insert_all(self, except_cols: Sequence[str] = ()) -> TableMerger:
        """Insert rows with all columns that the source has."""
        return self._merger.when_not_matched_insert_all(self._predicate, except_cols)


@dataclass(frozen=True, slots=True)
class NotMatchedBySource:
    """A clause for rows that no source row matches."""

    _merger: TableMerger
    _predicate: Any

    def update(self, updates: Values) -> TableMerger:
        """Set columns."""
        return self._merger.when_not_matched_by_source_update(updates, self._predicate)

    def delete(self) -> TableMerger:
        """Delete the rows."""
        return self._merger.when_not_matched_by_source_delete(self._predicate)
