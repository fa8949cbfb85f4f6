"""Errors of metastores and of syncs."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.errors.base import HudiError


class MetastoreError(HudiError):
    """A metastore does not answer, or refuses."""

    retryable = True

    def __init__(self, uris: Sequence[str], reason: str) -> None:
        self.uris, self.reason = tuple(uris), reason
        super().__init__(
            f"The metastore at {', '.join(uris)} did not answer: {reason}",
            "Check its address, that it asks for no Kerberos, and what these credentials may do; "
            "then do the same again.",
            uris=self.uris,
            reason=reason,
        )


class MetastoreRefusalError(MetastoreError):
    """A metastore refuses a change of an entry, and would again."""

    retryable = False


class MetastoreEntryError(HudiError):
    """An entry of a metastore that cannot be read as a table."""

    def __init__(self, name: str, reason: str, hint: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"{name} {reason}", hint, name=name, reason=reason)


class MetaSyncError(HudiError):
    """A sync failed after its commit, which is kept.

    Attributes
    ----------
    result
        What the call would have returned: of a write, its ``CommitResult``.
    """

    def __init__(self, base_path: str, tool: str, reason: str, result: object = None) -> None:
        self.base_path, self.tool, self.reason, self.result = base_path, tool, reason, result
        super().__init__(
            f"The commit to the table at {base_path} is complete, but the sync with {tool} that "
            f"follows it failed: {reason}",
            f"Do not write the rows again. `hudi sync {tool} {base_path}` brings the metastore up "
            "to date, as the next commit does; "
            "hoodie.datasource.hive_sync.ignore_exceptions=true makes this a warning.",
            base_path=base_path,
            tool=tool,
            reason=reason,
        )
