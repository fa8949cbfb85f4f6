"""Parsers of the values that ``hoodie.properties`` stores and its options carry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from hudi_core.config.extension_points import KEY_GENERATOR_POINT
from hudi_core.config.key_generators import KEY_GENERATOR_CLASSES, KEY_GENERATOR_WORDS
from hudi_core.config.kinds import (
    BUILT_IN_MERGERS,
    MERGE_STRATEGY_IDS,
    PAYLOAD_STRATEGY_ID,
    KeyGeneratorType,
    MergeMode,
    PartialUpdateMode,
    PayloadKind,
)
from hudi_core.config.parsers import names

NATIVE: Final = "native"
"""The table format whose metadata is Hudi's own."""
IGNORE_MARKERS: Final = "IGNORE_MARKERS"
"""What Hudi called ``FILL_UNAVAILABLE`` before it released it."""
_FORMAT_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_JAVA: Final = re.compile(r"(?:1\.)?([89]|[1-9][0-9])(?:\..*)?")
_NEW_FLOATS: Final = 19
"""The first release of Java that gives floating-point numbers the fewest digits."""
_FOLDER: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def format_names(text: str) -> str:
    """Parse the names of a table's formats, folded to lower case.

    One, or several with commas, in the order in which a commit reaches them.
    """
    names = [format_name(one.strip()) for one in text.split(",")]
    if len(names) > 1 and NATIVE in names:
        raise ValueError(f"every table is {NATIVE} as well: name the other formats only")
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise ValueError(f"it names {twice} twice")
    return ",".join(names)


def split_format_names(text: str) -> tuple[str, ...]:
    """The names that :func:`format_names` has joined."""
    return tuple(one.strip().lower() for one in text.split(","))


def format_name(text: str) -> str:
    """Parse a table format's name, folded to lower case."""
    # str.lower makes ASCII of a few other letters (the Kelvin sign), which must not name a format
    if not text.isascii() or not _FORMAT_NAME.fullmatch(text.lower()):
        raise ValueError("a format's name is a letter and up to 31 letters, digits, _ or -")
    return text.lower()


def key_generator(text: str) -> KeyGeneratorType | str:
    """Parse a key generator, by Hudi's names; any other stays a string."""
    known = KEY_GENERATOR_WORDS.get(text.upper()) or KEY_GENERATOR_CLASSES.get(text)
    if known is not None:
        return known
    return KEY_GENERATOR_POINT.find_name(text) or KeyGeneratorType.USER_PROVIDED


def key_generator_class(text: str) -> KeyGeneratorType | str | None:
    """Parse a Java key generator class, or a name."""
    return key_generator(text) if text else None


def concatenator(text: str) -> str | None:
    """Parse the separator between the values of a key."""
    if "," in text or ":" in text:
        raise ValueError("keys of that form are the key generator's own; leave the option out")
    return text or None


def payload_class(text: str) -> PayloadKind | str | None:
    """Parse a Java payload class; an unknown one stays a string."""
    # the package of Hudi's first releases, which old tables still name
    name = text.replace("com.uber.hoodie", "org.apache.hudi")
    if not name:
        return None
    known = {payload.value: payload for payload in PayloadKind}
    return known.get(name, text)


def merge_strategy(text: str) -> MergeMode | str | None:
    """Parse a merge strategy id; an unknown one stays a string."""
    modes = {identity: mode for mode, identity in MERGE_STRATEGY_IDS.items()}
    modes[PAYLOAD_STRATEGY_ID] = MergeMode.CUSTOM
    return modes.get(text.lower(), text) if text else None


def merger_classes(text: str) -> tuple[str, ...]:
    """Parse Java merger classes; only Hudi's own are accepted."""
    given = names(text)
    other = [name for name in given if name not in BUILT_IN_MERGERS]
    if other:
        raise ValueError(f"rows are not merged by code of others ({', '.join(other)})")
    return given


def partial_update_mode(text: str) -> PartialUpdateMode:
    """Parse a mode of partial updates."""
    return PartialUpdateMode.FILL_UNAVAILABLE if text == IGNORE_MARKERS else PartialUpdateMode(text)


def stored_partial_update(text: str) -> PartialUpdateMode | str:
    """Parse a partial update mode; an unknown one stays a string."""
    word = text.upper()
    known = word == IGNORE_MARKERS or word in PartialUpdateMode.__members__
    return partial_update_mode(word) if known else text


def merge_mode(text: str) -> MergeMode | None:
    """Parse a merge mode."""
    if not text:
        return None
    if text.upper() not in MergeMode.__members__:
        raise ValueError("there is no such merge mode")
    return MergeMode(text.upper())


def field_ids(text: str) -> dict[str, int]:
    """Parse field ids: a JSON object of dotted paths and numbers.

    The numbers are positive.
    """
    try:
        parsed = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(parsed, dict):
        raise ValueError("it is not a JSON object")
    if not all(type(number) is int and number > 0 for number in parsed.values()):
        raise ValueError("a field id is not a positive whole number")
    if len(set(parsed.values())) != len(parsed):
        raise ValueError("two fields have the same id")
    return parsed


def field_ids_text(ids: Mapping[str, int]) -> str | None:
    """The ids of a table's fields as JSON; ``None`` for none."""
    return json.dumps(dict(ids), separators=(",", ":")) if ids else None


def old_float_digits(text: str) -> bool | None:
    """Whether a release of Java gives floating-point numbers the older digits."""
    if not text:
        return None
    match = _JAVA.fullmatch(text)
    if match is None:
        raise ValueError("a release of Java is a number from 8 on, such as 17")
    return int(match[1]) < _NEW_FLOATS


def table_name(text: str) -> str | None:
    """Parse the name of a table or database."""
    if len(text) > 255 or re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError(
            "a name has at most 255 characters and none of them is a control character"
        )
    return text or None


def folder(text: str) -> str:
    """Parse a folder below ``.hoodie``; it must not lead anywhere else."""
    if not _FOLDER.fullmatch(text):
        raise ValueError("it is not a plain folder below .hoodie")
    return text
