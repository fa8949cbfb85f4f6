"""Lines of files of text, and what is wrong with them."""

from __future__ import annotations

from typing import Final

_LEAST_BLOCK, _LARGEST_BLOCK = 1 << 16, 1 << 30
_SHOWN: Final = 80


class BadLineError(ValueError):
    """A line that cannot be read as what it should be."""

    def __init__(
        self,
        line: int | None,
        what: str,
        *,
        column: str | None = None,
        value: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.line, self.column, self.value, self.hint = line, column, value, hint
        super().__init__(what if line is None else f"line {line:,} {what}")

    @classmethod
    def of_value(
        cls, line: int, column: str, value: object, reason: str, hint: str | None = None
    ) -> BadLineError:
        """The error of one value."""
        text = value if isinstance(value, str) else repr(value)
        shown = repr(value) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
        what = f"has {shown} in the column {column}, {reason}"
        return cls(line, what, column=column, value=text, hint=hint)


def decoded(data: bytes, encoding: str) -> str:
    """The text that bytes are."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "ignore")
        raise BadLineError(
            before.count("\n") + 1,
            f"is no {encoding.upper()} ({error.reason}: {data[error.start : error.end]!r})",
            hint="Name the encoding of CSV files in hoodie.streamer.csv.encoding, such as "
            "windows-1252; JSON is always UTF-8.",
        ) from error


def block_size(data: bytes) -> int:
    """The bytes of a whole file, as far as Arrow's readers can.

    Types are found in the first block alone, and no line may be longer than a block.
    """
    return min(max(len(data), _LEAST_BLOCK), _LARGEST_BLOCK)
