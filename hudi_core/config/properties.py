r"""The text format of ``hoodie.properties``: what ``java.util.Properties`` loads and stores.

A file is ISO 8859-1 text. Natural lines end with LF, CR or CR LF; one that ends with an odd number
of backslashes continues on the next, whose leading blanks do not count. A line whose first
character is ``#`` or ``!`` is a comment. The key ends at the first ``=``, ``:`` or blank that no
backslash protects. ``\t``, ``\n``, ``\r``, ``\f`` and ``\uXXXX`` (UTF-16, so surrogates come in
pairs) are escapes; before any other character a backslash means the character itself.

Two departures from Java, both on the strict side: a key that appears twice is damage (Java takes
the last), and so is a malformed escape.

javaproperties 0.8 was tried: it lets half of a surrogate pair pass, and writes escapes in small
letters, where Java has capitals. What it leaves to be checked is as long as reading.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from hudi_core.errors import ConfigError, CorruptMetadataError, InvalidOptionError

MAX_BYTES: Final = 1 << 20
"""Largest properties file that is read or written."""
FILE_NAME: Final = "hoodie.properties"
TABLE_NAME_KEY: Final = "hoodie.table.name"
DATABASE_KEY: Final = "hoodie.database.name"
CHECKSUM_KEY: Final = "hoodie.table.checksum"

_BLANKS: Final = " \t\f"
_UNESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {
    char: "\\" + char for char in "\\=:#!"
}
_ESCAPE: Final = re.compile(r"\\(?:u(?P<hex>.{0,4})|(?P<char>.))", re.DOTALL)


def table_checksum(database: str | None, name: str) -> int:
    """Return Hudi's checksum of a table.

    CRC 32 of ``<database>.<name>`` in UTF-8.
    """
    return zlib.crc32(f"{database or ''}.{name}".encode())


# --- reading --------------------------------------------------------------------------------------


def parse_properties(data: bytes, path: str = FILE_NAME) -> dict[str, str]:
    """Return the properties of a file, in the order of the file.

    A malformed escape, a key that appears twice, or more than :data:`MAX_BYTES` is corrupt.
    """
    return dict(_parsed(bytes(data), path))


@lru_cache(maxsize=16)
def _parsed(data: bytes, path: str) -> Mapping[str, str]:
    """See :func:`parse_properties`; a commit parses mostly the same text three times."""
    if len(data) > MAX_BYTES:
        raise CorruptMetadataError(path, f"it has {len(data)} bytes, more than {MAX_BYTES}")
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        key_text, value_text = _split(line)
        try:
            key, value = _unescape(key_text), _unescape(value_text)
        except ValueError as error:
            raise CorruptMetadataError(path, f"{error} in the line {line[:80]!r}") from error
        if key in properties:
            raise CorruptMetadataError(path, f"the key {key!r} appears twice")
        properties[key] = value
    return properties


def require_whole_properties(data: bytes, properties: Mapping[str, str], path: str) -> None:
    """Check that the properties of a table are whole.

    The checksum covers only the table's name. It is the last line of a file as first written, so a
    file that was cut off lacks it; Java rewrites files in another order, where a cut shows as a
    last line without an end.
    """
    name, stored = properties.get(TABLE_NAME_KEY), properties.get(CHECKSUM_KEY)
    if not name:
        raise CorruptMetadataError(path, f"{TABLE_NAME_KEY} is missing")
    expected = str(table_checksum(properties.get(DATABASE_KEY), name))
    if stored != expected:
        found = f"{CHECKSUM_KEY} is {stored}" if stored else f"{CHECKSUM_KEY} is missing"
        raise CorruptMetadataError(
            path,
            f"{found}, not {expected}",
            "Restore the file from a backup of the table; if you are certain that it is complete, "
            f"set {CHECKSUM_KEY}={expected} in it.",
        )
    last = data.rsplit(b"\n", 1)[-1]
    if last.strip() and not last.startswith(CHECKSUM_KEY.encode()):
        raise CorruptMetadataError(
            path,
            "its last line is cut off",
            "Restore the file from a backup of the table, or end a complete file with a newline.",
        )


def _logical_lines(text: str) -> Iterator[str]:
    pending: str | None = None
    # not str.splitlines: only LF, CR and CR LF end a line here
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANKS)
        if pending is None:
            if not line or line[0] in "#!":
                continue
        else:
            line = pending + line
        pending = None
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
        elif line:
            yield line
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        digits = match["hex"]
        if digits is None:
            return _UNESCAPED.get(match["char"], match["char"])
        if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
            raise ValueError(f"malformed escape \\u{digits}")
        return chr(int(digits, 16))

    units = _ESCAPE.sub(replace, text)
    try:
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair") from None


# --- writing --------------------------------------------------------------------------------------


def format_properties(properties: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """Return a properties file.

    A key that is empty or holds a line end or NUL, half of a surrogate pair, and more than
    :data:`MAX_BYTES` are refused.
    """
    lines = [
        "#" + _NOT_PRINTABLE.sub(_escape_one, line)
        for comment in comments
        for line in comment.splitlines()
    ]
    for key, value in properties.items():
        if not key or re.search(r"[\r\n\0]", key):
            raise InvalidOptionError(
                key, value, "its name is empty or holds a line end or NUL", "Use another name."
            )
        try:
            f"{key}{value}".encode()
        except UnicodeEncodeError:
            raise InvalidOptionError(
                key, value, "it holds half of a surrogate pair", "Use valid Unicode."
            ) from None
        # a blank ends a key wherever it is; in a value only leading blanks would be lost
        guard = "\\" if value.startswith(" ") else ""
        lines.append(_escape(key).replace(" ", "\\ ") + "=" + guard + _escape(value))
    data = "".join(f"{line}\n" for line in lines).encode("ascii")
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"The table's properties would take {len(data)} bytes, more than {MAX_BYTES}",
            "Use fewer or shorter properties; the schema is usually the largest.",
        )
    return data


_NOT_PRINTABLE: Final = re.compile(r"[^ -~]")
_SPECIAL: Final = re.compile(r"[^ -~]|[\\=:#!]")


def _escape(text: str) -> str:
    return _SPECIAL.sub(_escape_one, text)


def _escape_one(match: re.Match[str]) -> str:
    char = match[0]
    if char in _ESCAPED:
        return _ESCAPED[char]
    units = char.encode("utf-16-be", "replace").hex().upper()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
