"""Hudi's options that have no counterpart here, so that a Hudi user's options stay usable.

Tuning options of Hudi's engine are accepted in silence: they change no result. Options that switch
on what this release does not do are accepted as long as they leave it off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class AbsentFeature:
    """A feature of Hudi that is missing here.

    Attributes
    ----------
    here
        The value of the option that says what happens here.
    hudi_default
        Hudi's default.
    feature
        What the option controls.
    """

    here: str
    hudi_default: str
    feature: str


ABSENT_FEATURES: Final[Mapping[str, AbsentFeature]] = {
    "hoodie.clean.automatic": AbsentFeature("false", "true", "cleaning after a commit"),
    "hoodie.clean.async.enabled": AbsentFeature("false", "false", "cleaning beside writes"),
    "hoodie.archive.automatic": AbsentFeature("false", "true", "archiving after a commit"),
    "hoodie.clustering.inline": AbsentFeature("false", "false", "clustering after a commit"),
    "hoodie.clustering.async.enabled": AbsentFeature("false", "false", "clustering beside writes"),
    "hoodie.compact.inline": AbsentFeature("false", "false", "compaction after a commit"),
    "hoodie.datasource.meta.sync.enable": AbsentFeature("false", "false", "catalog sync"),
    "hoodie.datasource.hive_sync.enable": AbsentFeature("false", "false", "Hive sync"),
}
"""Options that ask for what this release does not do, by name."""

TUNING_OPTIONS: Final = (
    "hoodie.bloom.index.bucketized.checking",
    "hoodie.bloom.index.input.storage.level",
    "hoodie.bloom.index.keys.per.bucket",
    "hoodie.bloom.index.parallelism",
    "hoodie.bloom.index.prune.by.ranges",
    "hoodie.bloom.index.use.caching",
    "hoodie.bloom.index.use.treebased.filter",
    "hoodie.datasource.write.row.writer.enable",
    "hoodie.delete.shuffle.parallelism",
    "hoodie.embed.timeline.server",
    "hoodie.embed.timeline.server.port",
    "hoodie.embed.timeline.server.reuse.enabled",
    "hoodie.finalize.write.parallelism",
    "hoodie.global.index.reconcile.parallelism",
    "hoodie.global.simple.index.parallelism",
    "hoodie.insert.shuffle.parallelism",
    "hoodie.markers.delete.parallelism",
    "hoodie.memory.compaction.max.size",
    "hoodie.memory.merge.fraction",
    "hoodie.memory.merge.max.size",
    "hoodie.rollback.parallelism",
    "hoodie.rollback.using.markers",
    "hoodie.simple.index.input.storage.level",
    "hoodie.simple.index.parallelism",
    "hoodie.simple.index.use.caching",
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.write.buffer.limit.bytes",
    "hoodie.write.executor.type",
    "hoodie.write.status.storage.level",
    "hoodie.write.tagged.record.storage.level",
)
"""Options of Hudi's engine that change no result."""
