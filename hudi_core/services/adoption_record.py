"""The plan of a running adoption, stored in the folder.

A second run after a crash goes on with exactly that: the files get the names that were
chosen for them, under the instant that was chosen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.errors import CorruptMetadataError, InvalidInstantTimeError, PathNotFoundError
from hudi_core.model.files import BaseFileName, PartitionPath, join_path
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.protocols import Storage
from hudi_core.storage.safe_path import require_safe_folder, require_safe_path

RECORD_PATH: Final = ".hoodie/adoption.json"
_MAX_BYTES: Final = 1 << 28
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class AdoptedFile:
    """A file and the base file that it becomes.

    ``source`` is relative to the folder; ``partition_path`` and ``name`` are those of the base
    file; ``size`` is in bytes.
    """

    source: str
    partition_path: PartitionPath
    name: BaseFileName
    size: int
    rows: int

    @property
    def path(self) -> str:
        """Path of the base file."""
        return join_path(self.partition_path, str(self.name))


@dataclass(frozen=True, slots=True)
class AdoptionRecord:
    """The record.

    ``instant`` is the requested time of the commit that the files become, ``properties`` what
    ``hoodie.properties`` will say, and ``keeps_names`` whether files keep their former names beside
    the new ones.
    """

    instant: InstantTime
    properties: Mapping[str, str]
    source: str
    placements: tuple[AdoptedFile, ...]
    keeps_names: bool = False

    def put(self, storage: Storage) -> None:
        """Store the record; it stays as it is.

        ``AlreadyExistsError`` means that another adoption is at work.
        """
        document = {
            "version": _VERSION,
            "instant": self.instant,
            "source": self.source,
            "properties": dict(self.properties),
            "keeps_names": self.keeps_names,
            "files": [
                [one.source, one.partition_path, str(one.name), one.size, one.rows]
                for one in self.placements
            ],
        }
        storage.put_if_absent(RECORD_PATH, json.dumps(document).encode())

    @classmethod
    def load(cls, storage: Storage) -> AdoptionRecord | None:
        """Return the record that a folder has; ``None`` where it has none."""
        where = f"{storage.root}/{RECORD_PATH}"
        try:
            document = json.loads(storage.read(RECORD_PATH, _MAX_BYTES))
            return cls._parsed(document)
        except PathNotFoundError:
            return None
        except (
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            InvalidInstantTimeError,
        ) as error:
            raise CorruptMetadataError(
                where,
                f"it is no record of an adoption ({error})",
                "Where no file has its new name yet, delete it and run the adoption again.",
            ) from error

    @classmethod
    def _parsed(cls, document: Any) -> AdoptionRecord:
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']}")
        placements = []
        for source, partition, text, size, rows in document["files"]:
            name = BaseFileName.parse(text)
            if name is None:
                raise ValueError(f"{text!r} is no name of a base file")
            folder = PartitionPath(require_safe_folder(partition))
            placements.append(
                AdoptedFile(require_safe_path(source), folder, name, int(size), int(rows))
            )
        properties = {str(key): str(value) for key, value in dict(document["properties"]).items()}
        return cls(
            parse_instant_time(document["instant"]),
            properties,
            str(document["source"]),
            tuple(placements),
            document.get("keeps_names") is True,
        )
