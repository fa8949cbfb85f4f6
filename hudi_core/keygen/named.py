"""Key generators that other distributions provide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.extension_points import (
    KEY_GENERATOR_POINT,
    KeyGeneratorTraits,
    NamedKeyGenerator,
)
from hudi_core.errors import PluginContractError, RecordKeyError
from hudi_core.extension.guard import Guard
from hudi_core.keygen.base import (
    FieldStrings,
    Indices,
    KeyColumns,
    ValueStrings,
    is_missing,
    joined_paths,
    no_paths,
)
from hudi_core.storage.partition_path import PartitionPathCodec


class BaseKeyGenerator(KeyGeneratorTraits, ABC):
    """Makes record keys, and the strings of partition fields if wanted.

    What it makes of a row depends on the values of the row and on the table's options, on nothing
    else: keys are compared with those that were stored years ago, by other processes, and may be
    made again where a table does not store them. One is made for each task, where the task runs:
    with Spark on an executor.

    Parameters
    ----------
    columns
        The table's record key and partition fields.
    options
        The table's options that begin with ``hoodie.table.keygenerator.<name>.``, without that.
    """

    def __init__(self, columns: KeyColumns, options: Mapping[str, str]) -> None:
        self.columns, self.options = columns, options

    @abstractmethod
    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row.

        None of them is null or empty. ``columns.joined_key`` makes Hudi's ``f1:v1,f2:v2``,
        ``columns.text`` the text of one column as it is in there.

        Parameters
        ----------
        batch
            Rows, cast to the table's schema.
        """

    def partition_texts(self, batch: pa.RecordBatch) -> Sequence[pa.StringArray]:
        """Return a string for each row and partition field; null for none.

        Called where ``makes_partitions`` is true. The path is made of them as of any values.
        """
        return [self.columns.text(batch, column) for column in self.columns.partition]


@dataclass(frozen=True, slots=True)
class NamedKeys:
    """Keys and paths of a key generator of another distribution, checked."""

    guard: Guard
    generator: BaseKeyGenerator
    columns: KeyColumns
    codec: PartitionPathCodec
    makes_partitions: bool

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row."""
        keys = self.guard.call("record_keys", lambda: self.generator.record_keys(batch))
        self._require_texts("record_keys", keys, batch)
        missing = pc.sum(is_missing(keys), min_count=0).as_py()
        if missing:
            names = tuple(column.name for column in self.columns.record_key)
            raise RecordKeyError(
                f"The key generator {self.guard.name!r} makes no record key of "
                f"{', '.join(names)} in {missing} of {len(keys)} rows",
                "Give every row a key, or drop these rows.",
                columns=names,
                rows=missing,
            )
        return keys

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row."""
        if not self.columns.partition:
            return no_paths(batch)
        fields: list[FieldStrings]
        if self.makes_partitions:
            fields = [_Made(texts) for texts in self._partition_texts(batch)]
        else:
            fields = [ValueStrings(one, self.columns.form) for one in self.columns.partition]
        return joined_paths(batch, fields, self.codec)

    def _partition_texts(self, batch: pa.RecordBatch) -> list[pa.StringArray]:
        method = "partition_texts"
        found = self.guard.call(method, lambda: list(self.generator.partition_texts(batch)))
        if len(found) != len(self.columns.partition):
            self.guard.raise_violation(
                f"{method} returned {len(found)} arrays for {len(self.columns.partition)} fields"
            )
        for texts in found:
            self._require_texts(method, texts, batch)
        return found

    def _require_texts(self, method: str, texts: pa.StringArray, batch: pa.RecordBatch) -> None:
        self.guard.require(method, texts, (pa.StringArray,), "a pyarrow.StringArray")
        if len(texts) != batch.num_rows:
            self.guard.raise_violation(
                f"{method} returned {len(texts)} strings for {batch.num_rows} rows"
            )


@dataclass(frozen=True, slots=True)
class _Made:
    """The strings of one partition field."""

    texts: pa.StringArray

    def distinct(self, batch: pa.RecordBatch) -> tuple[Indices, list[str | None]]:
        """Return each row's string index, and the strings."""
        del batch  # the one that the strings were made of
        coded = self.texts.dictionary_encode(null_encoding="encode")
        return coded.indices.to_numpy().astype("int64"), coded.dictionary.to_pylist()


def named_keys(
    chosen: NamedKeyGenerator, columns: KeyColumns, codec: PartitionPathCodec
) -> NamedKeys:
    """Return the key generator that another distribution provides for a table."""
    name = chosen.name
    generator = KEY_GENERATOR_POINT.make(
        name, BaseKeyGenerator, lambda kind: kind(columns, dict(chosen.options))
    )
    if generator.makes_partitions is not chosen.makes_partitions:
        reason = "it made no partitions of this table, and the installed one makes them"
        if chosen.makes_partitions:
            reason = "it made the partitions of this table, and the installed one makes none"
        raise PluginContractError(name, reason, kind=KEY_GENERATOR_POINT.kind)
    guard = KEY_GENERATOR_POINT.guard(name)
    return NamedKeys(guard, generator, columns, codec, chosen.makes_partitions)
