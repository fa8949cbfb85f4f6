"""Hudi's options without a declaration here, and their treatment.

They are in ``hudi_options.txt`` beside this module, which explains its own lines. It is read when
the first of them is needed. A declaration in :mod:`hudi_core.config.option_warnings` goes before
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Final

from hudi_core.config.options import is_secret_name
from hudi_core.errors import InvalidOptionError

_FILE: Final = "hudi_options.txt"
_HEADER: Final = re.compile(
    r"\[(?P<kind>[a-z ]+)(?:; needs (?P<needs>\S+))?(?:; unless (?P<unless>\S+))?\] (?P<title>.+)"
)


class OptionTreatment(StrEnum):
    """Treatment of an option; the value is the word in the file."""

    QUIET = "quiet"
    LATER = "later"
    LATER_BY_DEFAULT = "later by default"
    REFUSED_IN_WRITES = "refused in writes"
    REFUSED_IN_READS = "refused in reads"


@dataclass(frozen=True, slots=True)
class Condition:
    """An option that is given; with a value, where one is named.

    ``value`` is in lower case; ``None`` for any.
    """

    name: str
    value: str | None

    @classmethod
    def parse(cls, text: str | None) -> Condition | None:
        """Return the condition that a header states."""
        if text is None:
            return None
        name, equals, value = text.partition("=")
        return cls(name, value.lower() if equals else None)

    def holds(self, options: Mapping[str, str]) -> bool:
        """Whether the options fulfil it."""
        given = options.get(self.name)
        return given is not None and self.value in (None, given.strip().lower())


@dataclass(frozen=True, slots=True)
class Section:
    """Options about one thing, of one kind.

    ``title`` is the thing, or what happens here instead, in words that go into messages. ``needs``
    is what has to hold for the options to ask for anything, ``unless`` what keeps them from it.
    """

    kind: OptionTreatment
    title: str
    needs: Condition | None = None
    unless: Condition | None = None

    def applies(self, options: Mapping[str, str]) -> bool:
        """Whether the conditions of the section hold."""
        if self.needs is not None and not self.needs.holds(options):
            return False
        return self.unless is None or not self.unless.holds(options)


@dataclass(frozen=True, slots=True)
class ForeignOption:
    """One line of the file.

    ``*`` in ``name`` matches anything. ``harmless`` are values that ask for nothing; ``None`` for a
    detail, which decides nothing by itself.
    """

    name: str
    section: Section
    harmless: tuple[str, ...] | None

    def is_requested(self, text: str) -> bool:
        """Whether a value is none of the harmless ones."""
        if self.harmless is None:
            return False
        parts = {part.strip().lower() for part in text.split(",")} - {""}
        return not parts <= {value.lower() for value in self.harmless}


class ForeignOptions:
    """All of the file.

    ``sections`` are in the order of the file; ``names`` is every name without ``*``.
    """

    def __init__(self, text: str) -> None:
        self.sections: dict[Section, list[ForeignOption]] = {}
        self._by_name: dict[str, list[ForeignOption]] = {}
        self._patterns: list[tuple[re.Pattern[str], ForeignOption]] = []
        lines = (line for line in text.splitlines() if line and not line.startswith("#"))
        for line in lines:
            header = _HEADER.fullmatch(line)
            if header is not None:
                needs, unless = Condition.parse(header["needs"]), Condition.parse(header["unless"])
                section = Section(OptionTreatment(header["kind"]), header["title"], needs, unless)
                self.sections[section] = []
            else:
                self._add(_option(line, section))
        self.names = frozenset(self._by_name)

    def _add(self, found: ForeignOption) -> None:
        self.sections[found.section].append(found)
        if "*" in found.name:
            pattern = re.escape(found.name).replace(r"\*", ".+")
            self._patterns.append((re.compile(pattern), found))
        else:
            self._by_name.setdefault(found.name, []).append(found)

    def of(self, name: str) -> list[ForeignOption]:
        """The lines about an option; empty for one that Hudi lacks."""
        found = self._by_name.get(name)
        if found is not None:
            return found
        return [line for pattern, line in self._patterns if pattern.fullmatch(name)]

    def wishes(self, options: Mapping[str, str]) -> Iterator[tuple[Section, list[str]]]:
        """Requested features that are not built yet, with their options."""
        given: dict[Section, dict[str, bool | None]] = {}
        for name, text in options.items():
            for line in self.of(name):
                requested = None if line.harmless is None else line.is_requested(text)
                given.setdefault(line.section, {})[name] = requested
        for section, asking in given.items():
            switches = [on for on in asking.values() if on is not None]
            by_default = section.kind is OptionTreatment.LATER_BY_DEFAULT and all(switches)
            is_on = by_default or (section.kind is OptionTreatment.LATER and any(switches))
            if is_on and section.applies(options):
                yield section, sorted(asking, key=lambda name: asking[name] is not True)

    def refuse(self, options: Mapping[str, str], kind: OptionTreatment) -> None:
        """Refuse options that would change rows or safety.

        ``kind`` is ``REFUSED_IN_WRITES`` or ``REFUSED_IN_READS``.
        """
        for name, text in options.items():
            for line in self.of(name):
                section = line.section
                if section.kind is kind and line.is_requested(text) and section.applies(options):
                    raise _refused(line, name, text)


def _option(line: str, section: Section) -> ForeignOption:
    name, equals, values = line.partition("=")
    harmless = tuple(value.strip() for value in values.split(",") if value.strip())
    return ForeignOption(name.strip(), section, harmless if equals else None)


def _refused(line: ForeignOption, name: str, text: str) -> InvalidOptionError:
    accepted = f" Accepted: {', '.join(line.harmless)}." if line.harmless else ""
    return InvalidOptionError(
        name,
        "***" if is_secret_name(name) else text,
        line.section.title,
        f"Drop the option, or do this with Apache Hudi.{accepted}",
    )


@cache
def foreign_options() -> ForeignOptions:
    """The table of Hudi's options; its file is read once."""
    text = files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    return ForeignOptions(text)
