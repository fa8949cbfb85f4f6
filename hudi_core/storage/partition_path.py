"""Partition values as folders and back.

What is written is what Hudi writes for the same two stored flags (its ``PartitionPathEncodeUtils``
and ``KeyGenUtils``), as far as that is safe and can be read back:

* a null is ``__HIVE_DEFAULT_PARTITION__``, and so is the empty string: the path alone does not
  distinguish them, the column in the files does. Where the table's format takes the value from the
  path the empty string is refused, as is the folder's own name anywhere;
* with ``url_encode``, the characters that Hive escapes are written ``%XX``, and so is a first ``.``
  or ``_`` where it would begin a folder's name (Hudi leaves those: such folders are hidden, or are
  not folders of their own);
* without it, values are written as they are. A ``/`` makes more levels, which Hudi's users rely on
  for values such as ``2026/01/31``; here only where it can be undone: with one partition field, in
  hive style, or where all values of a field have as many levels. All else that would not be one
  visible folder below the table is refused.

``urllib.parse.quote`` escapes whatever is not ASCII, and Hive none of that.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import PartitionValueError
from hudi_core.model.files import PartitionPath
from hudi_core.storage.safe_path import are_unsafe, require_safe_folder

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Name of the folder that holds the rows whose partition value is null."""
MAX_SEGMENT_BYTES: Final = 255
"""What common file systems take as one name."""

URL_ENCODE_KEY: Final = "hoodie.datasource.write.partitionpath.urlencode"
_ENCODE_HINT: Final = f"Set {URL_ENCODE_KEY}=true when the table is created, or change the value."
_ESCAPED: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def unescaped(text: str) -> str:
    """A value whose special characters are written ``%XX``, as it is."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


class PartitionPathCodec:
    """Encodes values of partition fields as a path, and decodes it.

    For every tuple of values that is not refused, ``decode(encode(values)) == values``, with null
    for the empty string; so no two other tuples share a path. Values are strings compared by their
    code points: nothing is normalised.

    ``hive_style`` names folders ``field=value``; ``url_encode`` writes special characters ``%XX``.
    ``levels`` is how many folders a value of each field takes where slashes are written as they
    are; by default one, or as many as it has where there is one field, or hive style.

    ``takes_empty``: the empty string may be a value.
    """

    def __init__(
        self,
        fields: Sequence[str],
        hive_style: bool,
        url_encode: bool,
        levels: Sequence[int] | None = None,
        takes_empty: bool = True,
    ) -> None:
        self._fields = tuple(fields)
        self._takes_empty = takes_empty
        self._hive_style = hive_style
        self._url_encode = url_encode
        several = levels is not None and max(levels, default=1) > 1 and not url_encode
        self._levels = tuple(levels) if levels is not None and several else None

    def encode(self, values: Sequence[str | None]) -> PartitionPath:
        """Return the path of one partition; no fields, no path.

        ``None`` is null. A value that cannot be a folder is refused, with a way out in the error.
        """
        if len(values) != len(self._fields):
            raise PartitionValueError(
                f"{len(values)} values were given for the partition fields {self._names()}",
                "Give one value per field.",
            )
        segments = [
            self._segment(n, field, value)
            for n, (field, value) in enumerate(zip(self._fields, values, strict=True))
        ]
        return PartitionPath("/".join(segments))

    def decode(self, path: str) -> tuple[str | None, ...]:
        """Return the values of one partition's path.

        Paths that other writers made are read as well: more levels than fields, hive style too,
        where there is one field.
        """
        require_safe_folder(path)
        segments = self._segments(path) if path else []
        if len(segments) != len(self._fields):
            raise self._foreign(path)
        return tuple(
            self._value(field, segment, path)
            for field, segment in zip(self._fields, segments, strict=True)
        )

    def decode_many(self, paths: pa.StringArray) -> tuple[list[pa.StringArray], pa.BooleanArray]:
        """Return the values of many paths by field, and a mask.

        The mask has the paths that they are of. The other paths are for :meth:`decode`.
        """
        regular = pc.invert(are_unsafe(paths))
        if self._url_encode:
            regular = pc.and_(regular, pc.invert(pc.match_substring(paths, "%")))
        segments = [paths]
        if len(self._fields) != 1:
            parts = pc.split_pattern(paths, "/")
            is_plain = pc.equal(pc.list_value_length(parts), len(self._fields))
            if self._levels is not None or not pc.all(is_plain).as_py():
                return [], pa.array(np.zeros(len(paths), np.bool_))
            segments = [pc.list_element(parts, number) for number in range(len(self._fields))]
        for number, field in enumerate(self._fields if self._hive_style else ()):
            prefix, segment = f"{field}=", segments[number]
            is_named = pc.and_(pc.starts_with(segment, prefix), pc.not_equal(segment, prefix))
            regular = pc.and_(regular, is_named)
            segments[number] = pc.utf8_slice_codeunits(segment, len(prefix))
        nothing = pa.scalar(None, pa.string())
        values = [pc.if_else(pc.equal(one, DEFAULT_PARTITION), nothing, one) for one in segments]
        return values, regular

    def _segments(self, path: str) -> list[str]:
        # with one field the whole path is its value, however many levels it has
        if len(self._fields) == 1:
            return [path]
        folders = path.split("/")
        if self._levels is None and self._hive_style:
            return self._by_names(folders)
        if self._levels is None:
            return folders
        ends = list(itertools.accumulate(self._levels, initial=0))
        if len(folders) != ends[-1]:
            return []
        return ["/".join(folders[start:end]) for start, end in itertools.pairwise(ends)]

    def _by_names(self, folders: Sequence[str]) -> list[str]:
        """The folders of each field: one with its name, and their followers."""
        found: list[list[str]] = []
        for folder in folders:
            following = self._fields[len(found) : len(found) + 1]
            if any(folder.startswith(f"{name}=") for name in following):
                found.append([folder])
            elif found:
                found[-1].append(folder)
            else:
                return []
        return ["/".join(some) for some in found]

    def _segment(self, number: int, field: str, value: str | None) -> str:
        if value is None or (value == "" and self._takes_empty):
            text = DEFAULT_PARTITION
        else:
            self._raise_refused(field, value)
            escaped = self._url_encode
            text = self._escaped(value) if escaped else self._plain(number, field, value)
        if self._hive_style:
            if "/" in field or _CONTROL.search(field):
                raise PartitionValueError(
                    f"The partition field {field!r} cannot be part of a folder's name",
                    "Rename the column, or create the table without hive-style partitioning.",
                    field=field,
                )
            text = f"{field}={text}"
        longest = max(len(part.encode()) for part in text.split("/"))
        if longest > MAX_SEGMENT_BYTES:
            raise self._refused(
                field,
                value,
                f"its folder's name would have {longest} bytes of {MAX_SEGMENT_BYTES} possible",
                "Partition by something shorter.",
            )
        return text

    def _raise_refused(self, field: str, value: str) -> None:
        reason = None
        if not value:
            reason = "it is empty, which readers of the table's format take for null"
        elif value == DEFAULT_PARTITION:
            reason = "it is the name of the folder for nulls"
        elif "\0" in value:
            reason = "it has a NUL character"
        elif any("\ud800" <= character <= "\udfff" for character in value):
            reason = "it is not Unicode text"
        if reason is not None:
            raise self._refused(field, value, reason, "Use null or another value.")

    def _escaped(self, value: str) -> str:
        text = _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)
        if not self._hive_style and text[0] in "._":
            text = f"%{ord(text[0]):02X}{text[1:]}"
        return text

    def _plain(self, number: int, field: str, value: str) -> str:
        reason = None
        parts = value.split("/")
        levels = 1 if self._levels is None else self._levels[number]
        free = (len(self._fields) == 1 or self._hive_style) and self._levels is None
        if _CONTROL.search(value):
            reason = "it has a control character"
        elif "\\" in value:
            reason = "it has a backslash, which some readers take for a slash"
        elif len(parts) != levels and not free:
            reason = "it has a slash, which would make one more level of folders"
        elif any(part in ("", ".", "..") for part in parts):
            reason = "it would not be a folder of its own below the table"
        elif self._hive_style and "=" in value:
            reason = "it has an equals sign, and so has the folder's name"
        elif any(part.startswith(".") for part in (parts[1:] if self._hive_style else parts)):
            reason = "readers take a folder that begins with a dot for hidden"
        elif not self._hive_style and number == 0 and value.startswith("_"):
            reason = "readers take a folder that begins with an underscore for hidden"
        elif DEFAULT_PARTITION in parts:
            reason = "it has the name of the folder for nulls"
        if reason is not None:
            raise self._refused(field, value, reason, _ENCODE_HINT)
        return value

    def _value(self, field: str, segment: str, path: str) -> str | None:
        if self._hive_style:
            prefix = f"{field}="
            if not segment.startswith(prefix) or segment == prefix:
                raise self._foreign(path)
            segment = segment[len(prefix) :]
        if segment == DEFAULT_PARTITION:
            return None
        if self._url_encode:
            return unescaped(segment)
        return segment

    def _refused(
        self, field: str, value: str | None, reason: str, hint: str
    ) -> PartitionValueError:
        return PartitionValueError(
            f"The value {value!r} of the partition field {field!r} cannot be a folder: {reason}",
            hint,
            field=field,
            value=value,
            reason=reason,
        )

    def _foreign(self, path: str) -> PartitionValueError:
        style = "hive-style " if self._hive_style else ""
        return PartitionValueError(
            f"{path!r} is not a {style}path of the partition fields {self._names()}",
            "The folder was made by another writer, or the table's partition fields were changed.",
            path=path,
        )

    def _names(self) -> str:
        return ", ".join(self._fields) or "(none)"


def require_not_nested(paths: Iterable[str]) -> None:
    """Refuse partitions within each other, such as ``2026`` and ``2026/01``.

    Listings, Hudi's as well, do not look for partitions below a partition: rows of the inner one
    would vanish.

    ``paths`` are all of the table, those about to be written included.
    """
    ordered = sorted({tuple(path.split("/")) for path in paths if path})
    for outer, inner in itertools.pairwise(ordered):
        if inner[: len(outer)] == outer:
            raise PartitionValueError(
                f"The partition {'/'.join(inner)!r} would lie within the partition "
                f"{'/'.join(outer)!r}, where readers do not look for it",
                f"Give all values the same number of levels, or set {URL_ENCODE_KEY}=true when "
                "the table is created.",
                outer="/".join(outer),
                inner="/".join(inner),
            )
