"""Errors of options and of tables that there cannot be."""

from __future__ import annotations

from hudi_core.errors.base import HudiError


class ConfigError(HudiError):
    """An option is unknown, malformed, or contradicts what the table has stored."""


class InvalidOptionError(ConfigError):
    """The value of one option cannot be used."""

    def __init__(self, key: str, value: object, reason: str, hint: str) -> None:
        self.key, self.value = key, value
        super().__init__(f"{key}={value!r} cannot be used: {reason}", hint, key=key, value=value)


class OptionConflictError(ConfigError):
    """An option contradicts the value stored in the table's ``hoodie.properties``."""

    def __init__(self, key: str, given: object, stored: object, hint: str | None = None) -> None:
        self.key, self.given, self.stored = key, given, stored
        super().__init__(
            f"{key}={given!r} contradicts the table, which was created with {stored!r}",
            hint or "Drop the option to use the table's value, or write to a new table.",
            key=key,
            given=given,
            stored=stored,
        )


class StoragePathTakenError(ConfigError):
    """A storage path that other tables' files keep from a table."""

    def __init__(self, storage_path: str, reason: str, hint: str) -> None:
        self.storage_path, self.reason = storage_path, reason
        super().__init__(
            f"Data files cannot be placed below {storage_path}: {reason}",
            hint,
            storage_path=storage_path,
            reason=reason,
        )


class UnsupportedTableError(ConfigError):
    """The table has a feature this release cannot handle without losing data."""

    def __init__(self, base_path: str, feature: str, hint: str) -> None:
        self.base_path, self.feature = base_path, feature
        super().__init__(
            f"The table at {base_path} {feature}", hint, base_path=base_path, feature=feature
        )


class UnfinishedMoveError(UnsupportedTableError):
    """A move of the format's metadata is unfinished.

    The metadata may be at the new place: only the user can say that it is not, by a forced repair.
    """
