"""How a table makes partitions from timestamps: Hudi's ``hoodie.keygen.timebased.*``.

Source: Hudi's ``TimestampKeyGeneratorConfig`` and ``HoodieDateTimeParser``; the table keeps what
``HoodieTableConfig.PERSISTED_CONFIG_LIST`` names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from hudi_core.config.options import ConfigKey, Group, Options
from hudi_core.config.parsers import member
from hudi_core.config.time_zone import UTC, stored_zone, time_zone
from hudi_core.errors import InvalidOptionError
from hudi_core.model.date_pattern import DatePattern
from hudi_core.model.partition_transform import PartitionTransform

_PREFIX: Final = "hoodie.keygen.timebased."
_DELIMITER: Final = re.compile(r"\\?[^\\\w\s.*+?()\[\]{}^$|]|\\[.*+?()\[\]{}^$|]|\\s\*?,\\s\*")


class TimestampType(StrEnum):
    """What the values of the partition column are."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    SCALAR = "SCALAR"

    @property
    def is_text(self) -> bool:
        """Whether values are strings that are parsed."""
        return self in (TimestampType.DATE_STRING, TimestampType.MIXED)


class TimeUnit(StrEnum):
    """What numbers count, since 1970-01-01T00:00:00Z."""

    NANOSECONDS = "NANOSECONDS"
    MICROSECONDS = "MICROSECONDS"
    MILLISECONDS = "MILLISECONDS"
    SECONDS = "SECONDS"
    MINUTES = "MINUTES"
    HOURS = "HOURS"
    DAYS = "DAYS"


_UNITS: Final = {
    TimestampType.UNIX_TIMESTAMP: TimeUnit.SECONDS,
    TimestampType.EPOCHMILLISECONDS: TimeUnit.MILLISECONDS,
    TimestampType.EPOCHMICROSECONDS: TimeUnit.MICROSECONDS,
}


@dataclass(frozen=True, slots=True)
class TimeBased:
    """How values become timestamps, and timestamps folders.

    ``unit`` is what numbers count, ``None`` for strings. Of the ``inputs``, patterns of strings,
    the first that fits is taken; empty for numbers. ``output`` is the pattern of folders.
    ``input_zone`` is that of strings that name no offset, and of folders where ``output_zone`` is
    not given; without any zone folders are in UTC, and for strings with an offset in that offset.
    Zones are as :func:`~hudi_core.config.time_zone.time_zone` returns them. ``properties`` is what
    tables store of it.
    """

    unit: TimeUnit | None
    inputs: tuple[DatePattern, ...]
    output: DatePattern
    input_zone: str | None
    output_zone: str | None
    properties: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def needs_zone(self) -> ConfigKey[str | None] | None:
        """The zone option without which paths depend on the process."""
        if self.unit is not None:
            return TimeKeys.output_zone if self.output_zone is None else None
        by_clock = not all(pattern.has_offset for pattern in self.inputs)
        return TimeKeys.input_zone if by_clock and self.input_zone is None else None

    @property
    def transform(self) -> PartitionTransform:
        """What folder names keep of the values."""
        if self.unit is None or self.output_zone not in (None, UTC):
            return PartitionTransform.OTHER
        return self.output.transform


def _delimiter(text: str) -> str:
    if text and not _DELIMITER.fullmatch(text):
        # an expression could be made that never ends
        raise ValueError("only a single character is supported, with a backslash where one is due")
    return text


def _class(text: str) -> str:
    if text not in _PARSERS:
        raise ValueError("no class is loaded")
    return text


_PARSERS: Final = (
    "org.apache.hudi.keygen.parser.HoodieDateTimeParser",
    "org.apache.hudi.keygen.parser.HoodieDateTimeParserImpl",
)


class TimeKeys(
    Options, group=Group.TABLE, former=("hoodie.keygen.", "hoodie.deltastreamer.keygen.")
):
    """How partitions are made from timestamps."""

    timestamp_type = ConfigKey[TimestampType | None](
        _PREFIX + "timestamp.type",
        parse=member(TimestampType),
        default_text="(required for TIMESTAMP partition fields)",
    )
    """What the values of a TIMESTAMP partition field are: UNIX_TIMESTAMP, EPOCHMILLISECONDS or
    EPOCHMICROSECONDS (seconds, milliseconds or microseconds since 1970), SCALAR (numbers in another
    unit), or DATE_STRING and MIXED (strings). A timestamp column takes EPOCHMICROSECONDS, its own
    unit; a date column SCALAR in DAYS."""
    scalar_unit = ConfigKey(_PREFIX + "timestamp.scalar.time.unit", default=TimeUnit.SECONDS)
    """What numbers of the type SCALAR count since 1970."""
    input_format = ConfigKey(
        _PREFIX + "input.dateformat", default="", default_text="(required for strings)"
    )
    """Formats of the strings, such as `yyyy-MM-dd'T'HH:mm:ssZ`; the first that fits is taken."""
    input_delimiter = ConfigKey(
        _PREFIX + "input.dateformat.list.delimiter.regex", default=",", parse=_delimiter
    )
    """The separator between several formats of strings: one character."""
    output_format = ConfigKey(
        _PREFIX + "output.dateformat",
        default="",
        default_text="(required for TIMESTAMP partition fields)",
    )
    """Format of the partition paths, such as `yyyy/MM/dd`; slashes make folders."""
    input_zone = ConfigKey(
        _PREFIX + "input.timezone",
        parse=time_zone,
        default_text="UTC",
        hudi_default="UTC in the documentation; in fact the zone of the process",
        reason="Two writers in two zones would make two partitions of one value. New tables store "
        "it.",
    )
    """Time zone of strings that do not name an offset."""
    output_zone = ConfigKey(
        _PREFIX + "output.timezone",
        parse=time_zone,
        default_text="UTC",
        hudi_default="UTC in the documentation; in fact the zone of the process, or of the text",
        reason="As for the zone of the input. New tables store it.",
    )
    """Time zone of the partition paths."""
    zone = ConfigKey(_PREFIX + "timezone", parse=time_zone, default_text="(see the two others)")
    """Time zone of both, in place of the two others."""
    parser_class = ConfigKey(
        "hoodie.keygen.datetime.parser.class", default=_PARSERS[0], parse=_class
    )
    """Hudi's name for what parses strings; no other class can be named, and none is loaded."""


def time_based(options: Mapping[str, str]) -> TimeBased:
    """Return the TIMESTAMP partition rules of options or stored properties."""
    kind = TimeKeys.timestamp_type.read(options)
    if kind is None:
        raise _missing(TimeKeys.timestamp_type, "TIMESTAMP partition fields need it")
    TimeKeys.parser_class.read(options)
    inputs: tuple[DatePattern, ...] = ()
    if kind.is_text:
        between = (
            (TimeKeys.input_delimiter.read(options) or ",").replace("\\s*", "").replace("\\", "")
        )
        formats = [part.strip() for part in TimeKeys.input_format.read(options).split(between)]
        if not any(formats):
            raise _missing(TimeKeys.input_format, f"values of the type {kind} need it")
        inputs = tuple(
            _pattern(TimeKeys.input_format, DatePattern.to_read, each) for each in formats
        )
    output = TimeKeys.output_format.read(options)
    if not output:
        raise _missing(TimeKeys.output_format, "TIMESTAMP partition fields need it")
    input_zone, output_zone = _zones_of(options)
    return TimeBased(
        unit=TimeKeys.scalar_unit.read(options)
        if kind is TimestampType.SCALAR
        else _UNITS.get(kind),
        inputs=inputs,
        output=_pattern(TimeKeys.output_format, DatePattern.to_write, output),
        input_zone=input_zone,
        output_zone=output_zone,
        properties=tuple(
            (key.key, given[1]) for key in TimeKeys.keys if (given := key.find(options)) is not None
        ),
    )


def chosen_time_based(options: Mapping[str, str]) -> TimeBased:
    """Return how the partitions of a new table are made; see :func:`time_based`.

    Its zones are always set, so that writers in two zones make the same paths.
    """
    given = {key.key: found[1] for key in TimeKeys.keys if (found := key.find(options)) is not None}
    if not given.get(TimeKeys.zone.key):
        given.pop(TimeKeys.zone.key, None)
        given |= {
            key.key: given.get(key.key) or UTC
            for key in (TimeKeys.input_zone, TimeKeys.output_zone)
        }
    for key in (TimeKeys.zone, TimeKeys.input_zone, TimeKeys.output_zone):
        zone = key.read(given)
        if zone is not None:
            given[key.key] = stored_zone(zone)
    return time_based(given)


def conflicting(options: Mapping[str, str], stored: TimeBased) -> tuple[str, str] | None:
    """Return an option, and its string, that contradicts the table."""
    kept = dict(stored.properties)
    inputs, outputs = _zones_of(kept)
    # a zone that the table does not store comes from those who know it
    zones = {
        TimeKeys.input_zone: {inputs} - {None},
        TimeKeys.output_zone: {outputs} - {None},
        TimeKeys.zone: {inputs, outputs} - {None},
    }
    for key in TimeKeys.keys:
        found = key.find(options)
        if found is None:
            continue
        meant = key.parse_as(*found)
        if (zones[key] if key in zones else {key.read(kept)}) - {meant}:
            return found
    return None


def with_zones_of(options: Mapping[str, str], stored: TimeBased) -> TimeBased:
    """Return the rules with zones from options where none are stored."""
    inputs, outputs = _zones_of(options)
    return replace(
        stored,
        input_zone=stored.input_zone or inputs,
        output_zone=stored.output_zone or outputs,
    )


def _zones_of(options: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The zones of what is read and of what is written."""
    if TimeKeys.zone.is_given(options):
        return (TimeKeys.zone.read(options),) * 2
    return TimeKeys.input_zone.read(options), TimeKeys.output_zone.read(options)


def _missing(key: ConfigKey[Any], reason: str) -> InvalidOptionError:
    return key.refused(None, f"it is missing, and {reason}", f"Set {key.key}.")


def _pattern(key: ConfigKey[Any], parse: Any, text: str) -> DatePattern:
    try:
        found: DatePattern = parse(text)
    except ValueError as error:
        raise key.refused(
            text, str(error), "docs/partitions.md lists the letters of formats."
        ) from error
    return found
