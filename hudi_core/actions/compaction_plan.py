"""Which file slices a compaction merges: Hudi's strategies.

Source: Hudi's ``CompactionStrategy`` and its subclasses. Pure functions of what could be merged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hudi_core.config.compaction import CompactionConfig, CompactionStrategyKind
from hudi_core.errors import TableServiceError
from hudi_core.model.actions import CompactionOperation

_DAY: Final = re.compile(r"(?:[^/=]+=)?(\d{4})/(?:[^/=]+=)?(\d{1,2})/(?:[^/=]+=)?(\d{1,2})")


def chosen_operations(
    operations: Sequence[CompactionOperation], config: CompactionConfig
) -> Sequence[CompactionOperation]:
    """What a compaction merges now, in its order."""
    match config.strategy:
        case CompactionStrategyKind.LOG_FILE_SIZE:
            name, least = "TOTAL_LOG_FILES_SIZE", config.log_size_threshold
            return [*_bounded(_most_first(operations, name, least), config.target_io)]
        case CompactionStrategyKind.LOG_FILE_NUM:
            name, least = "TOTAL_LOG_FILES", config.log_number_threshold
            return [*_bounded(_most_first(operations, name, least), config.target_io)]
        case CompactionStrategyKind.BOUNDED_IO:
            return [*_bounded(operations, config.target_io)]
        case CompactionStrategyKind.DAY_BASED:
            days = sorted({_day(one) for one in operations}, reverse=True)
            latest = days[: config.target_partitions]
            found = [one for one in operations if _day(one) in latest]
            return sorted(found, key=_day, reverse=True)
        case CompactionStrategyKind.UNBOUNDED:
            return operations


def _most_first(
    operations: Sequence[CompactionOperation], name: str, least: int
) -> Sequence[CompactionOperation]:
    wanted = [one for one in operations if _metric(one, name) >= least]
    return sorted(wanted, key=lambda one: -_metric(one, name))


def _bounded(
    operations: Sequence[CompactionOperation], megabytes: int
) -> Iterator[CompactionOperation]:
    """Yield operations until they have read and written so much."""
    left = float(megabytes)
    for one in operations:
        yield one
        left -= _metric(one, "TOTAL_IO_MB")
        if left <= 0:
            return


def _metric(one: CompactionOperation, name: str) -> float:
    return (one.metrics or {}).get(name, 0.0)


def _day(one: CompactionOperation) -> tuple[int, ...]:
    """The date that a partition path is."""
    path = one.partition_path or ""
    found = _DAY.fullmatch(path)
    if found is None:
        raise TableServiceError(
            f"The partition {path!r} is no date, as in 2026/11/29",
            f"Choose another {CompactionConfig.strategy.key} than "
            f"{CompactionStrategyKind.DAY_BASED}.",
        )
    return tuple(map(int, found.groups()))
