"""Forms of keys and paths, proved by stored rows.

Before the first write to a table of another writer, rows of its oldest and of its newest file are
put through our key generator. Where Hudi has several ways, the one that makes what is stored is
taken, and kept with the table. Where none does, every row of the write would be taken for a new
one, so that it is refused. Tables that were made or written here before are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.base_file.footer import opened_file, read_columns
from hudi_core.config.index_keys import IndexConfig, bucket_properties
from hudi_core.config.key_settings import form_properties
from hudi_core.config.kinds import IndexType
from hudi_core.config.options import ConfigKey
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig
from hudi_core.errors import OptionConflictError, SchemaError, UnsupportedTableError
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.index.bucket import key_hashes
from hudi_core.keygen import key_generator
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.buckets import bucket_of_file
from hudi_core.model.files import BaseFile, FileSlice, PartitionPath
from hudi_core.model.operation import Operation, Replaces
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import TableLock
from hudi_core.write.planning import require_bucket_groups

# --- columns of keys and paths that Hudi spells in several ways -----------------------------------


class Spelled(NamedTuple):
    """Types of values in keys and paths that have several spellings."""

    timestamps: bool
    floats: bool


def spelled(config: TableConfig, schema: TableSchema) -> Spelled:
    """The types with several spellings in a table's keys and paths."""
    fields = zip(config.partition_fields, config.partition_transforms, strict=True)
    own = [name for name, how in fields if how is PartitionTransform.IDENTITY]
    found = [schema.field(name) for name in (*config.record_key_fields, *own)]
    kinds: list[pa.DataType] = [field.type for field in found if field is not None]
    return Spelled(
        any(pt.is_timestamp(kind) and kind.tz for kind in kinds), any(map(pt.is_floating, kinds))
    )


def without_idle_forms(config: TableConfig, schema: TableSchema) -> TableConfig:
    """The configuration without spellings of types that its keys do not have."""
    found = spelled(config, schema)
    return replace(
        config,
        consistent_timestamps=config.consistent_timestamps if found.timestamps else None,
        old_floats=config.old_floats if found.floats else None,
    )


# --- forms of keys and paths, proved by stored rows -----------------------------------------------


_ROWS: Final = 1000
"""Of a file, where any of its keys shows the form."""
_FLOAT_BATCHES: Final = 32
"""So many times as many rows of a file are looked at for a number that shows the release of Java:
few numbers do, and each of them has to be spelled out."""
_NUMBERS: Final = ("true", "false")
_NEW_DIGITS: Final = ("a release before 19", "19 or later")
_PATHS: Final = 16
"""Rows of a file whose partition is looked at: a global index may have left some elsewhere."""


def require_same_form(config: TableConfig, schema: TableSchema) -> None:
    """Refuse options that state another form of keys than the known one."""
    found = spelled(config, schema)
    stated: list[tuple[bool, ConfigKey[Any], bool | None, str, str]] = [
        (
            found.timestamps,
            TableKeys.consistent_timestamps,
            config.consistent_timestamps,
            *_NUMBERS,
        ),
        (found.floats, TableKeys.old_floats, config.old_floats, *_NEW_DIGITS),
    ]
    for is_used, key, value, given, usual in stated:
        if is_used and value and key.key not in config.raw:
            raise OptionConflictError(key.key, given, usual)


def proven(
    client: TableMetaClient,
    slices: Iterable[FileSlice],
    schema: TableSchema,
    write: WriteConfig,
) -> TableConfig:
    """The configuration with the form of keys that stored rows have.

    Refused where no form makes the stored keys or paths, several forms are stored, or nothing shows
    what has to be known; and where an option states another form than the stored one.
    """
    config = client.config
    proof = _Proof(client, spelled(config, schema), write)
    samples = [sample for file in _ends(slices) for sample in proof.sample(file, schema)]
    return proof.decided(samples)


def form_to_keep(config: TableConfig, schema: TableSchema) -> dict[str, str]:
    """Properties by which later writes know the form of the keys."""
    kept = {
        **form_properties(without_idle_forms(config, schema)),
        ManagedKeys.keys_proved.key: "true",
    }
    if _is_ambiguous(config) and config.complex_keygen_new_encoding:
        kept[ManagedKeys.complex_encoding.key] = "VALUE_ONLY"
    elif _is_ambiguous(config) and config.version < 9:
        kept[ManagedKeys.complex_encoding.key] = "FIELD_PREFIXED"
    return {name: value for name, value in kept.items() if name not in config.raw}


def _is_ambiguous(config: TableConfig) -> bool:
    """Whether keys may be ``field:value`` or the bare value.

    Releases 1.0.0 to 1.0.2 of Hudi changed it, and stored nothing of it.
    """
    return config.may_name_one_key and ManagedKeys.complex_encoding.key not in config.raw


def _ends(slices: Iterable[FileSlice]) -> list[BaseFile]:
    """The oldest and the newest base file."""
    files = [one.base_file for one in slices if one.base_file is not None]
    files.sort(key=lambda file: (file.name.instant, file.path))
    return list(dict.fromkeys(files[:1] + files[-1:]))


@dataclass(frozen=True, slots=True)
class _Sample:
    """Rows of one file: columns of keys and paths, and stored keys."""

    schema: TableSchema
    batch: pa.RecordBatch
    stored: pa.StringArray
    partition_path: PartitionPath

    def made(self, config: TableConfig) -> pa.StringArray:
        """The record keys that a form makes."""
        return key_generator(config, self.schema).record_keys(self.batch)

    def right_keys(self, config: TableConfig) -> pa.BooleanArray:
        """The rows whose stored key a form makes."""
        if not config.record_key_fields:
            return pc.is_valid(self.stored)  # keys are generated
        if config.makes_keys:
            return pa.repeat(True, len(self.stored))  # and none are stored that could differ
        return pc.fill_null(pc.equal(self.made(config), self.stored), False)

    def tells_java(self, config: TableConfig) -> bool:
        """Whether a key shows the writer's release of Java.

        It is another one with the digits of another release.
        """
        if not config.record_key_fields:
            return False
        old, new = (self.made(replace(config, old_floats=one)) for one in (True, False))
        return not old.equals(new)

    def paths(self, config: TableConfig) -> Iterator[str]:
        """Yield the path of each row in a form, or its refusal."""
        generator = key_generator(replace(config, record_key_fields=()), self.schema)
        for row in range(min(_PATHS, self.batch.num_rows)):
            try:
                yield generator.partition_paths(self.batch.slice(row, 1))[0].as_py()
            except SchemaError as error:
                yield f"({error.what})"


@dataclass(frozen=True, slots=True)
class _Proof:
    """Compares stored rows with every form that may be theirs."""

    client: TableMetaClient
    spelled: Spelled
    write: WriteConfig

    def sample(self, file: BaseFile, schema: TableSchema) -> Iterator[_Sample]:
        """Yield the rows of a file to compare, in the file's types."""
        config = self.client.config
        fields = dict.fromkeys((*config.record_key_fields, *config.partition_fields))
        tops = list(dict.fromkeys(name.partition(".")[0] for name in fields))
        batches = self._batches(file, [RECORD_KEY, *tops])
        for number, batch in enumerate(batches):
            # a column may have been widened since, and keys stay what they were
            own = pa.schema([_own_type(batch.schema.field(name), schema) for name in tops])
            held = TableSchema.create(own)
            sample = _Sample(
                held,
                held.cast_batch(batch.select(tops)),
                batch.column(RECORD_KEY).cast(pa.string()),
                PartitionPath(file.path.rpartition("/")[0]),
            )
            tells_java = self.spelled.floats and sample.tells_java(config)
            if tells_java or not number:
                yield sample
            if tells_java:
                return

    def _batches(self, file: BaseFile, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield a file's first rows; missing columns are null."""
        most = _FLOAT_BATCHES if self.spelled.floats else 1
        with opened_file(self.client, file.path) as opened:
            held = [name for name in names if name in opened.schema_arrow.names]
            for batch in islice(opened.iter_batches(_ROWS, columns=held), most):
                columns = [
                    batch.column(name) if name in held else pa.nulls(batch.num_rows)
                    for name in names
                ]
                yield pa.record_batch(columns, list(names))

    def decided(self, samples: Sequence[_Sample]) -> TableConfig:
        """The one form that makes the stored keys and paths."""
        config, forms = self.client.config, list(self._forms())
        if not samples:
            return self._without_rows(forms)
        right = [form for form in forms if all(_is_right(form, sample) for sample in samples)]
        agreed = [form for form in right if self._stated(form) is None]
        if agreed:
            return self._only(agreed)
        for form in right:
            raise OptionConflictError(*(self._stated(form) or ()))
        if self._is_mixed(forms, samples) and not self.write.validates_complex_keys:
            return config
        raise self._wrong(forms[0], samples)

    def _forms(self) -> Iterator[TableConfig]:
        """Yield the forms that keys may have, the configured one first."""
        config = self.client.config
        encodings = [config.complex_keygen_new_encoding]
        if _is_ambiguous(config):
            encodings.append(not encodings[0])
        timestamps: list[bool | None] = [config.consistent_timestamps]
        if self.spelled.timestamps and TableKeys.consistent_timestamps.key not in config.raw:
            timestamps = [bool(config.consistent_timestamps), not config.consistent_timestamps]
        floats: list[bool | None] = [config.old_floats]
        if self.spelled.floats and TableKeys.old_floats.key not in config.raw:
            floats = [bool(config.old_floats), not config.old_floats]
        for encoding, consistent, old in product(encodings, timestamps, floats):
            if not consistent or config.local_zone or config.timezone != "LOCAL":
                yield replace(
                    config,
                    complex_keygen_new_encoding=encoding,
                    consistent_timestamps=consistent,
                    old_floats=old,
                )

    def _stated(self, form: TableConfig) -> tuple[str, str, str] | None:
        """An option that states another form: name, value, stored value."""
        config, options = self.client.config, self.client.options
        encoding, timestamps = TableKeys.complex_new_encoding, TableKeys.consistent_timestamps
        flags: list[tuple[ConfigKey[Any], bool | None, bool | None]] = [
            (encoding, config.complex_keygen_new_encoding, form.complex_keygen_new_encoding),
            (timestamps, config.consistent_timestamps, form.consistent_timestamps),
        ]
        for key, given, stored in flags:
            if key.is_given(options) and given != stored:
                return key.key, str(given).lower(), str(stored).lower()
        if config.old_floats in (None, form.old_floats):
            return None
        return TableKeys.old_floats.key, *(_NEW_DIGITS if config.old_floats else _NEW_DIGITS[::-1])

    def _only(self, agreed: Sequence[TableConfig]) -> TableConfig:
        """The first of several forms that make the same stored keys."""
        if len({bool(form.old_floats) for form in agreed}) > 1 and self._java_is_unknown:
            raise self._unknown_java("none of the keys that were looked at shows which")
        return agreed[0]

    def _without_rows(self, forms: Sequence[TableConfig]) -> TableConfig:
        """The form of a table without rows, where none is needed."""
        config = self.client.config
        is_stated = TableKeys.complex_new_encoding.is_given(self.client.options)
        doubtful = _is_ambiguous(config) and config.version < 9 and not is_stated
        if doubtful and self.write.validates_complex_keys:
            raise UnsupportedTableError(
                self.client.base_path,
                "has a complex record key of one field and no rows, and Hudi 1.0.0 to 1.0.2 make "
                "other keys of it than all later releases",
                "Say which keys its other writers make: "
                f"{TableKeys.complex_new_encoding.key}=true for the bare value, false for "
                f"`field:value`. Or set {WriteConfig.validates_complex_keys.key}=false.",
            )
        if self._java_is_unknown:
            raise self._unknown_java("it has no rows that show which")
        return forms[0]

    @property
    def _java_is_unknown(self) -> bool:
        return self.spelled.floats and self.client.config.old_floats is None

    def _unknown_java(self, why: str) -> UnsupportedTableError:
        return UnsupportedTableError(
            self.client.base_path,
            "makes record keys or partition paths of floating-point numbers, which Java before 19 "
            f"spells otherwise than later releases; {why}",
            f"Set {TableKeys.old_floats.key} to the release of Java that its other writers run "
            "on, such as 17.",
        )

    def _is_mixed(self, forms: Sequence[TableConfig], samples: Sequence[_Sample]) -> bool:
        """Whether the stored keys are of both complex forms.

        Where that is validated, or the forms differ otherwise, it raises instead: rows may be in
        the table twice.
        """
        shown: dict[TableConfig, str] = {}
        for sample in samples:
            left = pc.is_valid(sample.stored)
            for form in forms:
                right = pc.and_(left, sample.right_keys(form))
                if pc.any(right).as_py():
                    shown.setdefault(form, sample.stored.filter(right)[0].as_py())
                left = pc.and_not(left, right)
            if pc.any(left).as_py():
                return False
        if len(shown) < 2:
            return False
        is_complex = len({form.complex_keygen_new_encoding for form in shown}) > 1
        if is_complex and not self.write.validates_complex_keys:
            return True
        raise UnsupportedTableError(
            self.client.base_path,
            f"holds record keys of several forms, such as {' and '.join(map(repr, shown.values()))}"
            ", so that rows may be in it twice",
            "Write all its rows again with insert_overwrite_table, each key once.",
        )

    def _wrong(self, form: TableConfig, samples: Sequence[_Sample]) -> UnsupportedTableError:
        """The error for a row whose key no form makes."""
        zone = (
            " Where they spell timestamps in another time zone, name it in "
            f"{TableKeys.local_zone.key}."
        )
        way_out = (
            "Rows of the write would be taken for new ones. Write with the engine that made the "
            "table, or write all rows again with insert_overwrite_table."
        )
        for sample in samples:
            wrong = pc.invert(sample.right_keys(form))
            if pc.any(wrong).as_py():
                row = pc.index(wrong, True).as_py()
                stored, made = sample.stored[row].as_py(), sample.made(form)[row].as_py()
                feature = f"has the record key {stored!r} for a row of which its key generator "
                feature += f"({form.keygen_name}) makes {made!r}"
                break
        else:
            sample = next(one for one in samples if not _has_right_path(form, one))
            made = next(sample.paths(form))
            feature = f"has rows in the partition {sample.partition_path!r} for which its key "
            feature += f"generator ({form.keygen_name}) makes {made!r}"
        hint = way_out + (zone if self.spelled.timestamps or form.time_based is not None else "")
        return UnsupportedTableError(self.client.base_path, feature, hint)


def _own_type(field: pa.Field, schema: TableSchema) -> pa.Field:
    """A file's field; only the table knows whether timestamps have zones."""
    wanted = schema.arrow.field(field.name)
    return wanted if pt.is_timestamp(field.type) else field


def _is_right(form: TableConfig, sample: _Sample) -> bool:
    keys_are_right = pc.all(sample.right_keys(form)).as_py()
    return bool(keys_are_right) and _has_right_path(form, sample)


def _has_right_path(form: TableConfig, sample: _Sample) -> bool:
    return any(path == sample.partition_path for path in sample.paths(form))


# --- the layout of a table: proved before the first write, then kept ------------------------------


@dataclass(frozen=True, slots=True)
class ProvenLayout:
    """A table whose layout is known.

    ``to_keep`` are the properties by which later writes know the layout; empty where they are
    stored already.
    """

    table: OpenTable
    to_keep: Mapping[str, str] = field(default_factory=dict)

    def keep(self, lock: TableLock) -> None:
        """Store the properties, as soon as a write uses the layout.

        ``OptionConflictError``: another writer has stored another layout first.
        """
        if not self.to_keep:
            return
        storage = self.table.client.storage
        with lock.held():
            present = read_properties(storage)
            for key, value in self.to_keep.items():
                if present.get(key, value) != value:
                    raise OptionConflictError(key, value, present[key])
            update_properties(storage, self.to_keep)


def proven_layout(
    table: OpenTable, config: WriteConfig, operation: Operation, schema: TableSchema
) -> ProvenLayout:
    """The layout that stored rows show: keys, partitions and buckets.

    A table that was made here, or written before, costs nothing. Of any other one the files are
    listed, and a few are read in part.

    ``schema`` is the table's before the write.
    """
    client = table.client
    buckets = {name: text for name, text in bucket_properties(client.config.buckets) if text}
    if buckets.keys() <= client.config.raw.keys():
        buckets = {}
    knows_keys = client.config.knows_its_keys
    if knows_keys:
        require_same_form(client.config, schema)
    # then no stored row will be left, but other writers go on making their keys
    replaces_all = operation.replaces is Replaces.TABLE
    if knows_keys and (replaces_all or not buckets):
        return ProvenLayout(table, buckets)
    slices = table.views().view().latest_slices()
    if not replaces_all:
        require_same_buckets(client, slices)
    if knows_keys:
        return ProvenLayout(table, buckets)
    try:
        found = proven(client, slices, schema, config)
    except UnsupportedTableError:
        if not replaces_all:
            raise
        return ProvenLayout(table, buckets)  # which is the way out
    proven_table = replace(table, client=replace(client, config=found))
    return ProvenLayout(proven_table, {**buckets, **form_to_keep(found, schema)})


# --- buckets by stored keys -----------------------------------------------------------------------

# Hudi stores neither the index of a table nor the number of its buckets: every job states them. A
# wrong number sends rows to other file groups than those that hold their keys, and another index
# adds file groups that no bucket is. The hash of each stored key says which numbers of buckets it
# can be of.


_OWN_SETTINGS: Final = ".hoodie/.bucket_index"
"""Where Hudi keeps numbers of buckets by partition, and those of consistent hashing."""
_ENOUGH: Final = 256
"""Keys; with a wrong number each is in its bucket by chance, at most every other."""
_OF_EACH: Final = 64
_MOST_BUCKETS: Final = 100_000
"""The id of a group begins with eight digits of its bucket; that of others does so by chance."""


def require_same_buckets(client: TableMetaClient, slices: Sequence[FileSlice]) -> None:
    """Refuse a write by other buckets than the table's.

    Refused are: another index than the table's buckets, another number of them, and a number of
    buckets per partition. ``slices`` are the latest ones.
    """
    own = next(iter(client.storage.list_folders(_OWN_SETTINGS)), None)
    if own is not None:
        raise UnsupportedTableError(
            client.base_path,
            f"keeps numbers of buckets of its own in {own}",
            "Write to it with Apache Hudi, or copy its rows into a new table.",
        )
    buckets = client.config.buckets
    if buckets is None:
        _require_no_buckets(client, slices)
        return
    require_bucket_groups(slices, buckets, client.base_path)
    fitting = fitting_number(client, slices, buckets.fields)
    if fitting % buckets.number:
        raise UnsupportedTableError(
            client.base_path,
            f"has no {buckets.number} buckets by {', '.join(buckets.fields)}: stored keys are in "
            "other file groups than their hashes say"
            + (f"; they fit {fitting} buckets" if fitting > _last_bucket(slices) else ""),
            f"Give {IndexConfig.bucket_number.key} and {IndexConfig.bucket_fields.key} as the "
            "table was written with.",
        )


def fitting_number(
    client: TableMetaClient, slices: Sequence[FileSlice], fields: tuple[str, ...]
) -> int:
    """The greatest number of buckets that stored keys fit.

    They fit each of its divisors too; 0 where they fit any number.
    """
    found = seen = 0
    for keys, bucket in _keys_of_buckets(client, slices):
        apart = np.abs(key_hashes(keys, fields).astype(np.int64) - bucket)
        found = math.gcd(found, *apart.tolist())
        seen += len(keys)
        if seen >= _ENOUGH:
            break
    return found


def _keys_of_buckets(
    client: TableMetaClient, slices: Sequence[FileSlice]
) -> Iterator[tuple[pa.StringArray, int]]:
    stored = StoredSlices(client, client.timeline())
    # logs are read whole, and last
    for one in sorted(slices, key=lambda one: one.base_file is None):
        bucket = bucket_of_file(one.file_id)
        if bucket is None:
            continue
        if one.base_file is None:
            rows = stored.merged(one, [RECORD_KEY]).slice(0, _OF_EACH)
        else:
            rows = read_columns(client, one.base_file.path, [RECORD_KEY], _OF_EACH)
        yield rows.column(RECORD_KEY).combine_chunks().cast(pa.string()), bucket


def _require_no_buckets(client: TableMetaClient, slices: Sequence[FileSlice]) -> None:
    """Refuse to add groups of another index to a bucket table."""
    numbers = [bucket_of_file(one.file_id) for one in slices]
    if not numbers or any(one is None or one >= _MOST_BUCKETS for one in numbers):
        return
    config = client.config
    fitting = fitting_number(client, slices, config.record_key_fields)
    by_chance = 0 < fitting <= _last_bucket(slices)
    if by_chance and len(config.record_key_fields) == 1:
        return
    number = f", {fitting} of them as stored keys say" if fitting and not by_chance else ""
    raise UnsupportedTableError(
        client.base_path,
        f"has buckets{number}, and the write another index, whose file groups would belong to none",
        f"Set {IndexConfig.index_type.key}={IndexType.BUCKET.value} and "
        f"{IndexConfig.bucket_number.key} as the table was written with.",
    )


def _last_bucket(slices: Sequence[FileSlice]) -> int:
    return max((bucket_of_file(one.file_id) or 0 for one in slices), default=0)
