"""Names of time zones, as Java takes them."""

from __future__ import annotations

import os
import re
from datetime import UTC as UTC_ZONE
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

UTC: Final = "UTC"
_UTC_NAMES: Final = frozenset(
    {"UTC", "GMT", "Z", "UCT", "Zulu", "Universal", "Greenwich", "GMT0", "GMT+0", "GMT-0"}
    | {f"Etc/{name}" for name in ("UTC", "GMT", "UCT", "Zulu", "Universal", "Greenwich", "GMT0")}
)
_OLD_NAMES: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "CET",
    "EST": "America/New_York",
    "HST": "Pacific/Honolulu",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MET": "CET",
    "MIT": "Pacific/Apia",
    "MST": "America/Denver",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""What Joda-Time takes Java's three-letter names for; some mean another zone in the tz database."""
_OFFSET: Final = re.compile(r"GMT([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_MOST_BEHIND: Final = 12
"""Hours, for which there are names in both directions."""
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")

_MACHINE_ZONE: Final = "/etc/localtime"
"""What a machine's zone is read from where ``TZ`` does not name one."""
_OF_MACHINES: Final = re.compile(r"(localtime|posixrules|Factory)$|(posix|right)/")
"""What lists of zones have beside zones: other forms of them, and what each machine is set to."""


def time_zone(text: str) -> str | None:
    """Parse a time zone by Java's names; blank counts as missing.

    Unlike Java, which takes an unknown name for UTC, this refuses it.

    Returns ``UTC``, a name of the tz database, or an offset such as ``+05:30``.
    """
    if not text or text in _UTC_NAMES:
        return UTC if text else None
    offset = _OFFSET.fullmatch(text)
    if offset is not None:
        sign, hours, minutes = offset[1], int(offset[2]), int(offset[3] or 0)
        if hours > 23 or minutes > 59:
            raise ValueError("an offset is less than a day")
        if minutes or hours > _MOST_BEHIND:
            return f"{sign}{hours:02}:{minutes:02}"
        # in the names of the tz database the sign is what has to be added to get UTC
        return f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if hours else UTC
    if _ZONE.fullmatch(text) and not _OF_MACHINES.match(text):
        try:
            return ZoneInfo(_OLD_NAMES.get(text, text)).key
        except (ZoneInfoNotFoundError, OSError, ValueError):
            pass
    raise ValueError("this machine knows no such time zone; take one as Europe/Paris or GMT+05:30")


def stored_zone(zone: str) -> str:
    """Return a zone's stored name, which Java and other readers know."""
    return f"GMT{zone}" if zone[0] in "+-" else zone


def process_zone() -> str | None:
    """The name of this process's zone, as :func:`time_zone` returns names.

    It is that of the variable ``TZ``, else that of the machine.

    ``None`` where it has no name of the tz database, or clocks do not show what the name says.
    """
    now = datetime.now(UTC_ZONE)
    offset = now.astimezone().utcoffset()
    for text in _names_of_process():
        try:
            name = time_zone(text.removeprefix(":").rpartition("zoneinfo/")[2])
        except ValueError:
            continue
        if name is None or name[0] in "+-":
            continue
        if now.astimezone(ZoneInfo(name)).utcoffset() == offset:
            return name
    return None


def _names_of_process() -> list[str]:
    """Names of this process's zone, the first that counts in front."""
    given = os.environ.get("TZ")
    if given is not None:
        return [given or UTC]
    try:
        return [os.readlink(_MACHINE_ZONE)]
    except OSError:
        # a copy of the zone's file, or none at all, which means UTC
        return [] if os.path.exists(_MACHINE_ZONE) else [UTC]
