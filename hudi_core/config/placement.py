"""Places of data files (RFC-60), as options and properties.

The timeline and the metadata table name files as if all of them were in the table's folder. A
storage strategy decides the folders that they really are in. All that it goes by is chosen when the
table is created, and stored with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.config.options import ConfigKey, Group, Options, is_secret_name
from hudi_core.config.parsers import integer, names
from hudi_core.errors import InvalidOptionError, OptionConflictError
from hudi_core.extension.registry import ExtensionPoint

DEFAULT_STRATEGY: Final = "default"
OBJECT_STORE: Final = "object_store"
STRATEGY_PREFIX: Final = "hoodie.storage.strategy."
"""Options below this prefix are the strategy's; all of them are stored with the table."""
_HUDI_CLASSES: Final = {
    "HoodieDefaultStorageStrategy": DEFAULT_STRATEGY,
    "HoodieObjectStorageStrategy": OBJECT_STORE,
}
STORAGE_POINT: Final = ExtensionPoint(
    "hudi.storage_strategies", "storage strategy", frozenset({DEFAULT_STRATEGY, OBJECT_STORE})
)
_ARROW: Final = "->"
_NO_SWITCH: Final = (
    "Drop the option: files that the table has would not be found at the places of another "
    "strategy. `hudi table convert PATH --storage STRATEGY`, or Table.convert_storage, moves them."
)


def strategy_name(text: str) -> str:
    """Parse a strategy's name, or that of Hudi's Java class for it.

    Nothing is ever imported by its name.
    """
    package, _, last = text.rpartition(".")
    if last in _HUDI_CLASSES and (not package or package.startswith("org.apache.hudi")):
        return _HUDI_CLASSES[last]
    return STORAGE_POINT.name(text)


def storage_path(text: str) -> str:
    """Parse one storage path: an absolute path, or a URI."""
    path = text.strip().removeprefix("file://").rstrip("/")
    if not path.startswith("/") and "://" not in path:
        raise ValueError("it is neither an absolute path nor a URI")
    return path


def storage_paths(text: str) -> tuple[str, ...]:
    """Parse storage paths, separated by commas."""
    return names(",".join(map(storage_path, names(text))))


def partition_rules(text: str) -> tuple[tuple[str, str], ...]:
    """Parse patterns of partition paths, each with a storage path."""
    found = []
    for rule in filter(None, (one.strip() for one in text.split(";"))):
        pattern, arrow, path = rule.partition(_ARROW)
        if not arrow or not pattern.strip() or not path.strip():
            raise ValueError(f"{rule!r} is not of the form PATTERN {_ARROW} PATH")
        found.append((pattern.strip(), storage_path(path)))
    return tuple(found)


class PlacementKeys(Options, group=Group.TABLE):
    """Options that say where data files lie; stored with the table."""

    strategy = ConfigKey(f"{STRATEGY_PREFIX}class", default=DEFAULT_STRATEGY, parse=strategy_name)
    """Name of the storage strategy, which picks the folders above the partitions of data files:
    `default` (none), `object_store` (one of many prefixes, by a hash), or one that an installed
    distribution registers. The names of Hudi's Java classes select the first two; no class is
    loaded."""
    path = ConfigKey[tuple[str, ...]](
        "hoodie.storage.path", default=(), parse=storage_paths, default_text="(the table's folder)"
    )
    """Where data files lie, while `.hoodie` and the partitions' metadata stay in the table's
    folder; best a bucket or container of its own. A relative path is below the working directory,
    and stored as the whole path. Several are separated by commas, see
    hoodie.storage.path.partitions."""
    partitions = ConfigKey[tuple[tuple[str, str], ...]](
        "hoodie.storage.path.partitions",
        default=(),
        parse=partition_rules,
        default_text="(none: all partitions are below the first storage path)",
    )
    """Which partitions lie below which of several storage paths: patterns of partition paths, with
    `*` and `?` as in a shell, each with a storage path, as in `country=us* -> s3://us-bucket;
    country=de* -> s3://eu-bucket`. The first that matches counts; a partition that none matches
    lies below the first storage path."""
    hash_function = ConfigKey(
        f"{STRATEGY_PREFIX}hash.function",
        default="XXHASH32",
        choices=("XXHASH32", "XXHASH64"),
    )
    """`object_store`: the hash function."""
    hash_bits = ConfigKey(f"{STRATEGY_PREFIX}hash.bits", default=8, parse=integer(1, 64))
    """`object_store`: how many bits of the hash name the prefix: 8 make 256 prefixes, 32 nearly one
    per file group, and 64, by XXHASH64, one. All of them are listed where storage is."""
    hash_input = ConfigKey(
        f"{STRATEGY_PREFIX}hash.input",
        default="FILE_ID",
        choices=("FILE_ID", "PARTITION_AND_FILE_ID"),
    )
    """`object_store`: what is hashed. A base file and its logs always share a prefix."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What a table stores of where its data files lie.

    ``paths`` is empty where data files lie in the table's folder. ``rules`` are patterns of
    partition paths, each with its storage path, the first one first. ``options`` are those of the
    strategy, sorted, without the :data:`STRATEGY_PREFIX` of their names.
    """

    strategy: str = DEFAULT_STRATEGY
    paths: tuple[str, ...] = ()
    rules: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether data files lie in the table's folder."""
        return not self.paths

    @property
    def properties(self) -> dict[str, str | None]:
        """The properties that store it; ``None`` for those that are left out."""
        if self.is_default:
            return {PlacementKeys.strategy.key: None}
        rules = "; ".join(f"{pattern} {_ARROW} {path}" for pattern, path in self.rules)
        return {
            PlacementKeys.strategy.key: self.strategy,
            PlacementKeys.path.key: ",".join(self.paths),
            PlacementKeys.partitions.key: rules or None,
            **{f"{STRATEGY_PREFIX}{name}": value for name, value in self.options},
        }


def placement_of(options: Mapping[str, str]) -> Placement:
    """Where the data files of a table lie, by options or properties."""
    paths, rules = PlacementKeys.path.read(options), PlacementKeys.partitions.read(options)
    strategy = PlacementKeys.strategy.read(options)
    if strategy != DEFAULT_STRATEGY and not paths:
        raise PlacementKeys.strategy.refused(
            strategy,
            f"it needs a storage path, and {PlacementKeys.path.key} is missing",
            f"Set {PlacementKeys.path.key} to a bucket of its own, such as s3://bucket.",
        )
    _require_used(options, paths, rules)
    own = tuple(sorted(_strategy_options(options)))
    if paths:
        secret = next((name for name, _ in own if is_secret_name(name)), None)
        if secret is not None:
            raise InvalidOptionError(
                f"{STRATEGY_PREFIX}{secret}",
                "***",
                "options of a strategy are stored with the table, and no secret is",
                "Give credentials as options of the store.",
            )
        return Placement(strategy, paths, rules, own)
    return Placement()


def given_placement(options: Mapping[str, str]) -> Placement:
    """Where data files lie, by options that a user gives.

    Relative paths are below the working directory, as that of a table is.
    """
    return placement_of(_with_whole_paths(options))


def _with_whole_paths(options: Mapping[str, str]) -> Mapping[str, str]:
    whole = dict(options)
    if path := options.get(PlacementKeys.path.key):
        whole[PlacementKeys.path.key] = ",".join(map(_whole_path, path.split(",")))
    if rules := options.get(PlacementKeys.partitions.key):
        parts = (rule.partition(_ARROW) for rule in rules.split(";"))
        whole[PlacementKeys.partitions.key] = ";".join(
            f"{pattern}{arrow}{_whole_path(path)}" for pattern, arrow, path in parts
        )
    return whole


def _whole_path(path: str) -> str:
    path = path.strip()
    if not path or "://" in path:
        return path
    return os.path.abspath(os.path.expanduser(path.removeprefix("file:")))


def new_placement(options: Mapping[str, str]) -> Placement:
    """Where the data files of a new table are to lie.

    An option of no use without a storage path is refused, since the table would not store it.
    """
    made = given_placement(options)
    if made.is_default:
        unused = next((name for name, _ in _strategy_options(options)), None)
        if unused is not None:
            raise InvalidOptionError(
                f"{STRATEGY_PREFIX}{unused}",
                "***" if is_secret_name(unused) else options[f"{STRATEGY_PREFIX}{unused}"],
                f"it says how files are placed below a storage path, and {PlacementKeys.path.key} "
                "is missing",
                f"Drop it, or set {PlacementKeys.path.key}.",
            )
    return made


def _strategy_options(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if name.startswith(STRATEGY_PREFIX) and name != PlacementKeys.strategy.key:
            yield name.removeprefix(STRATEGY_PREFIX), value.strip()


def _require_used(
    options: Mapping[str, str], paths: tuple[str, ...], rules: tuple[tuple[str, str], ...]
) -> None:
    """Refuse storage paths that no partition would use, and unknown ones."""
    unknown = next((path for _, path in rules if path not in paths), None)
    if unknown is not None:
        reason = f"{unknown} is not among {PlacementKeys.path.key}"
        raise _unusable(PlacementKeys.partitions, options, reason)
    unused = [path for path in paths[1:] if path not in {one for _, one in rules}]
    if unused:
        reason = f"nothing says which partitions lie below {unused[0]}"
        raise _unusable(PlacementKeys.path, options, reason)


def _unusable(
    key: ConfigKey[object], options: Mapping[str, str], reason: str
) -> InvalidOptionError:
    hint = f"Name in {PlacementKeys.partitions.key} a pattern for each of several paths."
    return key.refused(options.get(key.key), reason, hint)


def require_same_placement(options: Mapping[str, str], stored: Placement) -> None:
    """Refuse options that would look for a table's files elsewhere."""
    known, options = stored.properties, _with_whole_paths(options)
    for name in options:
        key = _BY_NAME.get(name)
        if key is None and not name.startswith(STRATEGY_PREFIX):
            continue
        was = known.get(name)
        if key is None or key.key.startswith(f"{STRATEGY_PREFIX}hash."):
            same = was is not None and options[name].strip().lower() == was.lower()
        else:
            before = key.default if was is None else key.parse_as(name, was)
            same = key.read(options) == before
        if not same:
            raise OptionConflictError(name, options[name], was, _NO_SWITCH)


_BY_NAME: Final = {key.key: key for key in PlacementKeys.keys}
