"""Values of partition columns by paths, as Hudi's extractors have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_core.config.sync import Extractor, SyncConfig
from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError
from hudi_core.model.files import PartitionPath
from hudi_core.storage.partition_path import unescaped

_DAY: Final = re.compile(
    r"(?:[^/=]+=)?(\d{4})/(?:[^/=]+=)?(\d{1,2})/(?:[^/=]+=)?(\d{1,2})(?:/(?:[^/=]+=)?(\d{1,2}))?"
)


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """Derives values of partitions from their paths.

    ``decodes``: ``%XX`` are characters that were escaped.
    """

    fields: tuple[str, ...]
    extractor: Extractor
    decodes: bool

    @classmethod
    def of(cls, table: TableConfig, config: SyncConfig) -> PartitionValues:
        """Those of a table, by options or by its key generator."""
        given = config.partition_fields
        fields = table.partition_fields if given is None else given
        decodes = config.decode_partition
        return cls(
            fields,
            config.extractor or _usual(table, fields),
            table.url_encode if decodes is None else decodes,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The partition columns of the entry; none without partitions."""
        return () if self.extractor is Extractor.NONE else self.fields

    def by_values(self, paths: Iterable[PartitionPath]) -> dict[tuple[str, ...], str]:
        """Paths of partitions by their values."""
        found: dict[tuple[str, ...], str] = {}
        for path in sorted(paths):
            values = self.of_path(path)
            other = found.setdefault(values, path)
            if other != path:
                raise PartitionValueError(
                    f"The partitions {other!r} and {path!r} have the same values "
                    f"{', '.join(values)}, by {self.extractor}",
                    f"Give another {SyncConfig.extractor.key}.",
                    path=path,
                )
        return found

    def of_path(self, path: PartitionPath) -> tuple[str, ...]:
        """The values of a partition."""
        found = _EXTRACTORS[self.extractor](path)
        if found is None or len(found) != len(self.fields):
            raise PartitionValueError(
                f"{self.extractor} makes no values of the partition columns "
                f"{', '.join(self.fields)} of the path {path!r}",
                f"Give another {SyncConfig.extractor.key}, or the columns that the paths have in "
                f"{SyncConfig.partition_fields.key}.",
                path=path,
            )
        return tuple(map(unescaped, found)) if self.decodes else tuple(found)


def _usual(table: TableConfig, fields: Sequence[str]) -> Extractor:
    if not fields:
        return Extractor.NONE
    if len(fields) == 1:
        # a value with slashes is one value still
        return Extractor.HIVE_STYLE if table.hive_style else Extractor.WHOLE_PATH
    return Extractor.BY_FOLDER


def _value(folder: str) -> str:
    name, equals, value = folder.partition("=")
    return value if equals else name


def _hive_style(path: str) -> Sequence[str] | None:
    name, equals, value = path.partition("=")
    return [value] if name and equals else None


def _day(path: str) -> Sequence[str] | None:
    found = _DAY.fullmatch(path)
    return None if found is None or found[4] else ["-".join((found[1], *_two(found, 2, 3)))]


def _hour(path: str) -> Sequence[str] | None:
    found = _DAY.fullmatch(path)
    return None if found is None or not found[4] else ["-".join((found[1], *_two(found, 2, 3, 4)))]


def _two(found: re.Match[str], *groups: int) -> list[str]:
    return [found[group].zfill(2) for group in groups]


_EXTRACTORS: Final[Mapping[Extractor, Callable[[str], Sequence[str] | None]]] = {
    Extractor.BY_FOLDER: lambda path: [_value(folder) for folder in path.split("/")],
    Extractor.WHOLE_PATH: lambda path: [path],
    Extractor.HIVE_STYLE: _hive_style,
    Extractor.DAY: _day,
    Extractor.HOUR: _hour,
    Extractor.NONE: lambda _: [],
}
