"""A table of version 6 that Apache Hudi made, and what Hudi's own upgrades make of it.

``python -m tests.jvm.capture_version_6`` rebuilds the file.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hudi_core.config.properties import CHECKSUM_KEY, parse_properties
from hudi_core.model.instant import Action, file_name_v1, parse_file_name_v2
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from hudi_core.timeline.archived import ArchivedTimeline
from hudi_core.timeline.serde import decode_commit, decode_record
from hudi_core.timeline.serde.records import to_record

FILE: Final = Path(__file__).with_name("version_6.zip")
TABLE: Final = "table"
DATES: Final = "dates.json"
UTC: Final = {"hoodie.table.timeline.local.zone": "UTC"}
"""The zone that the table was made in, which it does not name."""


@dataclass(frozen=True)
class Left:
    """What an upgrade leaves.

    ``properties``: those with a value. ``instants``: contents of the completed files of the
    timeline, by their names. ``history``: completion time and content of each archived instant, by
    its requested time and action.
    """

    properties: dict[str, str]
    instants: dict[str, Any]
    history: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> Left:
        """Properties, timeline and history of a table of layout 2."""
        text = (path / ".hoodie/hoodie.properties").read_bytes()
        timeline = path / ".hoodie/timeline"
        files = [file for file in timeline.iterdir() if file.name[:1].isdigit()]
        archived = ArchivedTimeline(PosixStorage(str(path)), ".hoodie/timeline/history")
        return cls(
            {
                key: value
                for key, value in parse_properties(text, str(path)).items()
                if value and key != CHECKSUM_KEY
            },
            {file.name: _content(file.read_bytes()) for file in files if "_" in file.name},
            {
                f"{one.instant.requested_time} {one.instant.action}": [
                    one.instant.completion_time,
                    _content(one.metadata or b""),
                ]
                for one in archived.load(bodies=True)
            },
        )

    @classmethod
    def by_hudi(cls, to: int) -> Left:
        """The captured table after an upgrade by Hudi."""
        with zipfile.ZipFile(FILE) as archive:
            return cls(**json.loads(archive.read(f"{to}.json")))


def _content(data: bytes) -> Any:
    """A body as JSON has it, without what is empty, and what Java writes as nothing."""
    return _plain(decode_record(data, "captured").fields) if data else None


def _plain(value: Any) -> Any:
    match value:
        case dict():
            found = {key: _plain(one) for key, one in sorted(value.items())}
            return {
                key: one
                for key, one in found.items()
                # Java's upgrade leaves out the version, and the number of log files
                if one not in (None, {}, []) and key not in ("version", "totalLogFiles")
            }
        case list() | tuple():
            return [_plain(one) for one in value]
        case bytes():
            return value.hex()
    return value


def to_version_6(path: Path) -> None:
    """Make a table of version 8 that has neither archive nor pending instants one of version 6."""
    meta = path / ".hoodie"
    for file in sorted((meta / "timeline").iterdir()):
        instant = parse_file_name_v2(file.name)
        if instant is None:
            continue
        body = file.read_bytes()
        if body and instant.is_completed and instant.action is Action.COMMIT:
            body = json.dumps(to_record(decode_commit(body, file.name))).encode()
        (meta / file_name_v1(instant)).write_bytes(body)
    shutil.rmtree(meta / "timeline")
    storage = PosixStorage(str(path), fsync=False)
    update_properties(storage, {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"})


def unpack(folder: Path) -> Path:
    """Unpack the table, with the dates of its files; return its path."""
    with zipfile.ZipFile(FILE) as archive:
        archive.extractall(folder, [one for one in archive.namelist() if one.startswith(TABLE)])
        dates: dict[str, int] = json.loads(archive.read(DATES))
    for name, nanoseconds in dates.items():
        os.utime(folder / TABLE / name, ns=(nanoseconds, nanoseconds))
    return folder / TABLE
