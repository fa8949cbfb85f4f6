"""Options of validators: what must hold before a commit completes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import meanings_of
from hudi_core.errors import InvalidOptionError

TABLE_NAME: Final = "<TABLE_NAME>"
"""Placeholder of the table in a query."""
_PACKAGE: Final = "org.apache.hudi.client.validator."


class ValidatorKind(StrEnum):
    """What the rows of a query have to be."""

    EQUALITY = "equality"
    """The same before and after the commit."""
    INEQUALITY = "inequality"
    """Others after the commit than before."""
    SINGLE_VALUE = "single_value"
    """One given value after the commit."""


class FailurePolicy(StrEnum):
    """What becomes of a commit that a validator refuses."""

    FAIL = "FAIL"
    WARN_LOG = "WARN_LOG"


VALIDATOR_CLASSES: Final = {
    _PACKAGE + "SqlQueryEqualityPreCommitValidator": ValidatorKind.EQUALITY,
    _PACKAGE + "SqlQueryInequalityPreCommitValidator": ValidatorKind.INEQUALITY,
    _PACKAGE + "SqlQuerySingleResultPreCommitValidator": ValidatorKind.SINGLE_VALUE,
}
"""What Hudi's validator classes mean."""


@dataclass(frozen=True, slots=True)
class SqlCheck:
    """A query whose result decides about a commit.

    :data:`TABLE_NAME` in ``query`` is replaced by the table; ``kind`` is what its rows have to be,
    ``expected`` the value as text, where there has to be one.
    """

    kind: ValidatorKind
    query: str
    expected: str | None = None


def queries(text: str) -> tuple[str, ...]:
    """Parse queries between semicolons, each of the table."""
    found = tuple(part.strip() for part in text.split(";") if part.strip())
    for query in found:
        if TABLE_NAME not in query:
            raise ValueError(f"{query!r} does not ask {TABLE_NAME}, so no commit can change it")
    return found


def queries_with_values(text: str) -> tuple[tuple[str, str], ...]:
    """Parse queries between semicolons, each with ``#`` and its value."""
    found = []
    for query in queries(text):
        asked, sign, expected = query.partition("#")
        if not sign or "#" in expected or TABLE_NAME not in asked:
            raise ValueError(f"{query!r} is not a query, one # and the value that it must return")
        found.append((asked.strip(), expected.strip()))
    return tuple(found)


class ValidatorsConfig(Options, group=Group.WRITE):
    """What must hold of the state that a write publishes."""

    kinds: Option[tuple[ValidatorKind, ...]] = Option(
        "hoodie.precommit.validators",
        default=(),
        parse=meanings_of(VALIDATOR_CLASSES | {kind.value: kind for kind in ValidatorKind}),
    )
    """Validators that run before a commit completes, separated by commas: `equality`, `inequality`
    and `single_value`, or Hudi's Java classes
    `org.apache.hudi.client.validator.SqlQueryEqualityPreCommitValidator`,
    `org.apache.hudi.client.validator.SqlQueryInequalityPreCommitValidator`,
    `org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator`. A commit that one
    refuses is rolled back. DuckDB runs their queries, which needs `pip install
    hudi-core[validators]`."""
    equality: Option[tuple[str, ...]] = Option(
        "hoodie.precommit.validators.equality.sql.queries", default=(), parse=queries
    )
    """Queries of `equality`, separated by semicolons. In each `<TABLE_NAME>` means the table; the
    rows have to be the same before and after the commit, in any order."""
    inequality: Option[tuple[str, ...]] = Option(
        "hoodie.precommit.validators.inequality.sql.queries", default=(), parse=queries
    )
    """Queries of `inequality`: the rows must not be the same before and after the commit."""
    single_value: Option[tuple[tuple[str, str], ...]] = Option(
        "hoodie.precommit.validators.single.value.sql.queries",
        default=(),
        parse=queries_with_values,
    )
    """Queries of `single_value`, each followed by `#` and the one value that it must return after
    the commit, as in `select count(*) from <TABLE_NAME> where fare < 0#0`."""
    failure_policy: Option[FailurePolicy] = Option(
        "hoodie.precommit.validators.failure.policy", default=FailurePolicy.FAIL
    )
    """What becomes of a commit that a validator refuses. FAIL: it is rolled back. WARN_LOG: it
    completes, and a warning is logged."""

    @property
    def sql_checks(self) -> tuple[SqlCheck, ...]:
        """The queries to run."""
        return (
            *(SqlCheck(ValidatorKind.EQUALITY, query) for query in self.equality),
            *(SqlCheck(ValidatorKind.INEQUALITY, query) for query in self.inequality),
            *(
                SqlCheck(ValidatorKind.SINGLE_VALUE, query, expected)
                for query, expected in self.single_value
            ),
        )

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; validators and queries must go together."""
        config = super().from_options(options)
        asked = {
            ValidatorKind.EQUALITY: cls.equality.key,
            ValidatorKind.INEQUALITY: cls.inequality.key,
            ValidatorKind.SINGLE_VALUE: cls.single_value.key,
        }
        given = {check.kind for check in config.sql_checks}
        for kind, key in asked.items():
            if kind in config.kinds and kind not in given:
                reason, hint = f"{kind.value} has no query", f"Give {key}."
                raise cls.kinds.refused(kind.value, reason, hint)
            if kind in given and kind not in config.kinds:
                reason, hint = "no validator runs it", f"Add {kind.value} to {cls.kinds.key}."
                raise InvalidOptionError(key, options.get(key, ""), reason, hint)
        return config
