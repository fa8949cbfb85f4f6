"""`hudi table adopt`, `convert`, `repair` and other services of a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter
from typing import TYPE_CHECKING, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.output import Facts, Grid, Part
from hudi_core.cli.service import (
    DRY_RUN,
    OPTION,
    SHOWN,
    UNCHANGED,
    Call,
    argument,
    counted,
    installed_format,
    names,
    option,
    service,
    switch,
)

if TYPE_CHECKING:
    from hudi_core.config.placement import Placement
    from hudi_core.model.difference import Difference
    from hudi_core.services.adoption.plan import Adoption
    from hudi_core.services.convert import Conversion, TypeConversion
    from hudi_core.services.drop import DropResult
    from hudi_core.services.mending.differences import TableValidation
    from hudi_core.services.mending.repair import Repair
    from hudi_core.services.metadata import MetadataRepair
    from hudi_core.services.relocate import StorageConversion
    from hudi_core.services.rewrite_keys import KeyRewrite
    from hudi_core.services.upgrade import Upgrade

# --- adopt ----------------------------------------------------------------------------------------


def _adopt(call: Call) -> Adoption:
    if call.given["source"] != library.PLAIN:
        installed_format(call.given["source"])
    return library.Table.adopt(call.path, options=call.options, **call.given)


@service(
    argument("PATH", "A folder of Parquet files, or a table of an installed format."),
    names("--key", "Columns of the record key.", "record_key"),
    names("--partition-by", "Partition columns; by default those found there."),
    option(
        "--ordering-field",
        "Of two rows with one key the greater value wins.",
        metavar="COLUMN",
    ),
    option("--name", "Name of the table; by default the last part of the path."),
    option("--format", "Table format; by default the one found there.", callback=installed_format),
    option("--from", "What to adopt, of several: a format, or parquet.", name="source"),
    option("--rewrite", "Write the rows into a new table there instead.", metavar="NEW_PATH"),
    DRY_RUN,
    does=_adopt,
    progress="files",
    examples="hudi table adopt files --key id --dry-run\n"
    "hudi table adopt files --key id --rewrite rewritten",
)
def adopt(done: Adoption, call: Call) -> Iterator[Part]:
    """Adopt a folder of Parquet files, or another format's table.

    The files stay as they are and get new names. They have no meta columns, so that the table has
    virtual keys and no incremental queries. With --rewrite the rows are written into a new table
    that is like any other, and the folder stays as it is.
    """
    how = "rewritten" if done.is_rewritten else "as they are"
    if call.dry_run:
        yield Facts(
            [
                ("table", done.path),
                ("from", done.source),
                ("to", done.table_format),
                ("files", _files(done)),
                ("rows", f"{done.rows:,}, {how}"),
                ("partitions", "-" if done.partitions is None else f"{done.partitions:,}"),
            ]
        )
        if not done.is_rewritten and not done.obstacles:
            yield from _of_history(done, "would stay", "would end")
        for obstacle in done.obstacles:
            yield f"not possible without --rewrite: {obstacle}"
        yield UNCHANGED
        return
    yield (
        f"Adopted {done.files:,} files with {done.rows:,} rows, {how}, as the "
        f"{done.table_format} table {done.path}."
    )
    if not done.is_rewritten:
        yield "Its files have no meta columns: it has virtual keys, and no incremental queries."
        yield from _of_history(done, "stay", "ended")


def _of_history(done: Adoption, stay: str, end: str) -> Iterator[Part]:
    """What becomes of the states that the format had before."""
    if done.source == library.PLAIN:
        return
    if done.keeps_history:
        yield f"Former states of the {done.source} table {stay}: files keep their former names too."
    else:
        yield (
            f"Former states of the {done.source} table {end}: files lose their former names, as "
            "the table has no metadata table (hoodie.metadata.enable=false)."
        )


# --- convert --------------------------------------------------------------------------------------


def _check_conversion(given: dict[str, Any]) -> None:
    if sum(given[name] is not None for name in ("to", "type", "storage")) != 1:
        raise typer.BadParameter("give one of --to, --type and --storage", param_hint="'--to'")


def _convert(call: Call) -> Conversion | TypeConversion | StorageConversion:
    to, kind, strategy = (call.given.pop(name) for name in ("to", "type", "storage"))
    if to is not None:
        return call.table.convert(to, **call.given)
    if kind is not None:
        wanted = call.options
        call.options = library.without_type(wanted)
        left_out = {name: wanted[name] for name in wanted.keys() - call.options.keys()}
        return call.table.convert_type(kind, options=left_out, **call.given)
    wanted = {**call.options, "hoodie.storage.strategy.class": strategy}
    call.options = library.without_placement(call.options)
    return call.table.convert_storage(wanted, **call.given)


@service(
    option("--to", "See `hudi formats`.", metavar="FORMAT", callback=installed_format),
    option("--type", "MERGE_ON_READ or COPY_ON_WRITE.", metavar="TYPE"),
    option(
        "--storage",
        "Move the data files: `object_store`, `default` or another storage strategy, with its "
        "options, such as -o hoodie.storage.path=PATH.",
        metavar="STRATEGY",
    ),
    OPTION,
    DRY_RUN,
    does=_convert,
    progress="files",
    check=_check_conversion,
    examples="hudi table convert trips --to native --dry-run\nhudi table convert trips --to native",
)
def convert(done: Any, call: Call) -> Iterator[Part]:
    """Change the table's format, its type, or where its data files lie.

    With --to, data files and Hudi timeline stay, and the metadata of the former format stays where
    it is, and is not kept up any more. With --type MERGE_ON_READ, changes go into log files from
    now on; with COPY_ON_WRITE all log files are merged first. With --storage, data files move, and
    all else stays; a move that was interrupted goes on when it is run again.
    """
    if hasattr(done, "copied"):
        yield from _moved(done, call.dry_run)
    else:
        yield from (_retyped if hasattr(done, "logs") else _converted)(done, call.dry_run)


def _moved(done: StorageConversion, dry_run: bool) -> Iterator[Part]:
    if not done.is_needed:
        yield f"The data files of {done.path} lie there already: nothing was moved."
        if done.deleted:
            yield f"{done.deleted:,} files that a move had left elsewhere were deleted."
    elif dry_run:
        yield _plan(done, _place(done.before), _place(done.after), ("files", _files(done)))
        yield UNCHANGED
    else:
        yield (
            f"Moved {done.files:,} files of {done.path} ({done.size:,} bytes) to "
            f"{_place(done.after)}: {done.copied:,} copied, {done.deleted:,} old ones deleted."
        )


def _retyped(done: TypeConversion, dry_run: bool) -> Iterator[Part]:
    if not done.is_needed:
        yield f"{done.path} is of type {done.after} already: nothing to do."
    elif dry_run:
        merged = f"{done.logs:,} of {done.slices:,} file slices, {done.log_bytes:,} bytes"
        yield _plan(done, done.before, done.after, ("logs to merge", merged if done.logs else "-"))
        yield UNCHANGED
    else:
        merged = f": {done.logs:,} log files were merged first" if done.logs else ""
        yield f"{done.path} is of type {done.after} now, and was {done.before}{merged}."


def _converted(done: Conversion, dry_run: bool) -> Iterator[Part]:
    where = f" in {done.partitions:,} partitions"
    if not done.is_needed:
        yield f"{done.path} has the format {done.after} already: nothing to do."
    elif dry_run:
        instants = ("instants", f"{done.instants:,}, complete by a watermark")
        yield _plan(done, done.before, done.after, ("files", _files(done, where)), instants)
        yield UNCHANGED
    else:
        what = f"{done.files:,} files{where}"
        yield f"Converted {done.path} from {done.before} to {done.after}: {what}."


def _plan(
    done: Conversion | TypeConversion | StorageConversion,
    before: str,
    after: str,
    *facts: tuple[str, str],
) -> Facts:
    pending = f"{done.pending:,}, recovered first" if done.pending else "-"
    changed = [("table", done.path), ("from", before), ("to", after)]
    return Facts([*changed, *facts, ("pending", pending)])


def _files(done: Adoption | Conversion | StorageConversion, where: str = "") -> str:
    return f"{done.files:,}{where}, {done.size:,} bytes"


def _place(placement: Placement) -> str:
    paths = ", ".join(placement.paths) or "the table's folder"
    return f"{paths} ({placement.strategy})"


# --- upgrade, rewrite keys ------------------------------------------------------------------------


def _version(given: int) -> int:
    """A version that tables are brought to."""
    if given not in (6, 8, 9):
        raise typer.BadParameter("it is 6, 8 or 9")
    return given


def _upgrade(call: Call) -> Upgrade:
    to = call.given["to"]
    if call.dry_run:
        return library.plan_upgrade(call.path, call.options, to)
    engine, progress = library.engine_of(None), call.given["progress"]
    return library.upgrade_table(call.path, call.options, to, engine, progress)


def _upgraded(done: Upgrade, call: Call) -> Mapping[str, Any]:
    return {
        **_changed(done, call),
        "properties": {name: _pair(values) for name, values in done.properties.items()},
        "timeline": list(map(_pair, done.renamed)),
        "pending": list(map(str, done.pending)),
    }


def _pair(values: tuple[str | None, str | None]) -> Mapping[str, str | None]:
    return dict(zip(("before", "after"), values, strict=True))


def _changed(done: Upgrade | KeyRewrite, call: Call) -> Mapping[str, bool]:
    return {"changed": done.is_needed and not call.dry_run}


@service(
    option(
        "--to", "Version of the table.", int, Parameter.empty, metavar="6|8|9", callback=_version
    ),
    OPTION,
    DRY_RUN,
    does=_upgrade,
    progress="files",
    facts=_upgraded,
    examples="hudi table upgrade trips --to 9 --dry-run",
)
def upgrade(done: Upgrade, call: Call) -> Iterator[Part]:
    """Bring the table to version 8 or 9, or down to 6.

    Tables of version 6 are for Hudi before 1.0, and only read here. Writers that know only the
    former version must have ended. An upgrade that died is run again.
    """
    if not done.is_needed:
        yield f"{done.path} has version {done.after} already: nothing to do."
    elif call.dry_run:
        yield Facts(
            [
                ("table", done.path),
                ("from", str(done.before)),
                ("to", str(done.after)),
                ("pending", ", ".join(map(str, done.pending)) or "-"),
                ("archive files", f"{len(done.archives):,}" if done.archives else "-"),
                ("logs merged", f"{done.logs:,}" if done.logs else "-"),
                ("rebuilt", ", ".join(done.partitions) or "-"),
            ]
        )
        changes = [[key, *(each or "-" for each in pair)] for key, pair in done.properties.items()]
        if changes:
            yield Grid(["property", "before", "after"], changes, "properties")
        if done.renamed:
            yield Grid(["before", "after"], done.renamed, "timeline")
        if done.is_resumed:
            yield "An earlier upgrade was interrupted: this one ends it."
        yield UNCHANGED
    elif done.before == done.after:
        yield f"Ended the interrupted upgrade of {done.path} to version {done.after}."
    else:
        yield (
            f"Brought {done.path} from version {done.before} to {done.after}: "
            f"{len(done.renamed):,} files of the timeline, {len(done.archives):,} of the archive, "
            f"{done.logs:,} log files merged, {len(done.partitions):,} partitions of the metadata "
            "table rebuilt."
        )


def _check_keys(given: dict[str, Any]) -> None:
    if given["materialise"] and given["transition"]:
        raise typer.BadParameter("it is for other keys", param_hint="'--transition'")


@service(
    switch("--materialise", "Put the keys back into the files."),
    switch("--transition", "Make keys here, and go on storing them for others."),
    switch("--keep-files", "Leave present files until a write changes them."),
    OPTION,
    DRY_RUN,
    progress="files",
    check=_check_keys,
    facts=_changed,
    examples="hudi table rewrite-keys trips --dry-run",
)
def rewrite_keys(done: KeyRewrite, call: Call) -> Iterator[Part]:
    """Take the stored record keys out of the files.

    They are made of their columns. All stored keys are compared with the made ones first. A run
    that died is run again.
    """
    if not done.is_needed:
        yield f"The keys of {done.path} are {done.after} already: nothing to do."
        return
    if done.rows:
        yield f"{done.rows:,} stored keys are those that their columns make."
    if call.dry_run:
        yield (
            f"The keys of {done.path} would be {done.after}, and are {done.before}: {done.files:,} "
            f"files, {done.size:,} bytes, would be rewritten."
        )
        yield UNCHANGED
        return
    yield f"The keys of {done.path} are {done.after}, and were {done.before}."
    if done.files:
        yield f"{done.files:,} files were rewritten: {done.size:,} bytes became {done.new_size:,}."


# --- validate, repair -----------------------------------------------------------------------------


def _validate(call: Call) -> TableValidation:
    return call.table.validate(footers=not call.given.pop("quick"), **call.given)


@service(
    switch("--quick", "Compare files and sizes; read no data file."),
    switch("--keys", "Read the keys of all rows; count those of several rows."),
    does=_validate,
    progress="files",
    is_wrong=lambda report: not report.is_valid,
    examples="hudi table validate trips --json",
)
def validate(report: TableValidation, _: Call) -> Iterator[Part]:
    """Compare timeline, storage, metadata table and the format's own metadata.

    Exit code 4: they differ.
    """
    yield from _differences("", report.differences)
    compared = [[what, f"{count:,}"] for what, count in report.checked.items()]
    yield Grid(["compared", "number"], compared)
    for what, reason in report.skipped.items():
        yield f"{what}: not compared, {reason}"
    if report.orphans:
        size = len(report.orphans)
        yield f"{counted(size, 'orphan')}, files that belong to nothing:"
        for path in report.orphans[:SHOWN]:
            yield f"  {path}"
        if size > SHOWN:
            yield f"  and {size - SHOWN} more (--json has them all)"
    found = report.repeated_keys
    if found is not None and found.keys and not found.are_forbidden:
        some = ", ".join(map(str, found.examples))
        more = ", ..." if found.keys > len(found.examples) else ""
        yield f"Keys that several rows have: {found.keys:,} in {found.rows:,} rows: {some}{more}"
    count = counted(len(report.differences), "difference")
    result = "is sound" if report.is_valid else f"has {count}"
    rows = "" if report.rows is None else f", {report.rows:,} rows"
    yield (
        f"The {report.table_format} table at {report.path} {result}: {report.files:,} files{rows}."
    )


def _differences(title: str, found: Sequence[Difference]) -> Iterator[Part]:
    """Differences one a line, if there are any."""
    rows = [[one.source, one.subject, one.found or "", one.expected or ""] for one in found]
    if rows:
        yield Grid(["who", "of what", "says", "expected"], rows, title)


def _check_repair(given: dict[str, Any]) -> None:
    if given["take_in"] and given["discard"]:
        raise typer.BadParameter("--take-in is given as well", param_hint="--discard")
    for name in ("force", "take_in", "discard"):
        if given["metadata"] and given[name]:
            hint = f"--{name.replace('_', '-')}"
            raise typer.BadParameter("it is about the format's metadata", param_hint=hint)


def _repair(call: Call) -> Repair | MetadataRepair:
    given = call.given
    if given.pop("metadata"):
        return call.table.repair_metadata(dry_run=call.dry_run, progress=given["progress"])
    return call.table.repair(**given)


def _rebuilt(done: Repair) -> list[str]:
    parts = {"metadata table": done.metadata_table, done.table_format: done.format_metadata}
    commits = [f"the completed file of {time}" for time in done.commits]
    commits += [f"what replaced file group {one}" for one in done.returned]
    return commits + [name for name, is_rebuilt in parts.items() if is_rebuilt]


@service(
    switch("--force", "Rebuild the format's metadata in any case."),
    switch("--take-in", "Write rows that another writer appended into the table."),
    switch("--discard", "Take commits of other writers out of the format's metadata."),
    switch("--metadata", "Rebuild just the metadata table, from all files, in any case."),
    DRY_RUN,
    does=_repair,
    progress="files",
    check=_check_repair,
    facts=lambda done, _: {"rebuilt": _rebuilt(done)} if hasattr(done, "found") else {},
    is_wrong=lambda done: bool(getattr(done, "left", ())),
    examples="hudi table repair trips --dry-run\nhudi table repair trips --metadata",
)
def repair(done: Any, call: Call) -> Iterator[Part]:
    """Rebuild lost or wrong parts of metadata table and format's metadata.

    Where another writer than Hudi has added, deleted or changed rows in the format's metadata,
    nothing is changed unless --take-in or --discard says what becomes of them; --dry-run counts
    them. Exit code 4 says that something is wrong still.

    With --metadata the folders are listed, footers and keys read, and the metadata table that they
    make is compared with the commits, and with the one in use, before it replaces that.
    """
    return (_repaired if hasattr(done, "found") else _metadata_repaired)(done, call)


def _metadata_repaired(done: MetadataRepair, call: Call) -> Iterator[Part]:
    made = done.rebuilt
    if made is None:
        yield f"{done.path}: put the metadata table in place that an earlier repair had built."
    else:
        yield from _differences("differences from the one in use", made.differences)
        if made.unreadable is not None:
            yield f"The one in use could not be compared: {made.unreadable}."
        if made.orphans:
            yield f"Not listed, for no commit names them: {', '.join(made.orphans)}"
        if made.gone:
            yield f"Left out, as nothing says which column they are of: {', '.join(made.gone)}"
        rebuilt = "Would rebuild" if call.dry_run else "Rebuilt"
        yield f"{rebuilt} the metadata table of {done.path} from {made.files} files."
    yield f"Partitions: {', '.join(done.partitions)}"
    if call.dry_run:
        yield UNCHANGED


def _repaired(done: Repair, call: Call) -> Iterator[Part]:
    dry_run, rebuilt = call.dry_run, " and ".join(_rebuilt(done))
    yield from _differences("found", done.found)
    for one in done.foreign:
        commits = ", ".join(one.commits)
        yield f"Other writers in the {one.table_format} metadata ({commits}): {one.text}."
    if done.taken_in is not None:
        written = done.taken_in
        counts = (
            f"{written.inserted:,} new, {written.updated:,} updated, {written.deleted:,} deleted"
        )
        yield f"{'Would take' if dry_run else 'Took'} in {written.rows:,} rows ({counts})."
    elif done.drops_rows and dry_run and not call.given["discard"]:
        ways = "--take-in or --discard" if done.can_take_in else "--discard"
        yield f"Would be refused without {ways}. {UNCHANGED}"
        return
    if not done.is_needed:
        yield f"{done.path}: nothing to rebuild."
    elif dry_run:
        yield f"Would rebuild: {rebuilt or 'nothing, but publish what is pending'}. {UNCHANGED}"
    else:
        yield f"{done.path}: rebuilt: {rebuilt or 'nothing, but published what was pending'}."
    if done.rewritten:
        rewritten = "Would rewrite" if dry_run else "Rewrote"
        yield f"{rewritten} {len(done.rewritten):,} data files, with the same rows."
    if done.checksums:
        removed = "Would remove" if dry_run else "Removed"
        yield f"{removed} the checksum files that are wrong."
    yield from _differences("left, to be mended by hand", done.left)


# --- drop -----------------------------------------------------------------------------------------


def _check_drop(given: dict[str, Any]) -> None:
    if given.pop("yes") == given["dry_run"]:
        raise typer.BadParameter("give one of --yes and --dry-run", param_hint="'--yes'")


def _drop(call: Call) -> DropResult:
    # a table that cannot be opened can be dropped
    return (library.plan_drop if call.dry_run else library.drop_table)(call.path, call.options)


@service(
    switch("--yes", "Delete it; nothing is asked."),
    DRY_RUN,
    does=_drop,
    check=_check_drop,
    examples="hudi table drop arrived --dry-run",
)
def drop(done: DropResult, call: Call) -> Iterator[Part]:
    """Delete a table with all its rows and history.

    An entry of it in a catalog stays, to be dropped there.
    """
    did = "Would drop" if call.dry_run else "Dropped"
    what = f"{counted(done.files, 'file', ',')}, {done.size:,} bytes"
    name = done.name or "the table"
    yield f"{did} {name} at {done.path} (format {done.table_format}): {what}."
    if call.dry_run:
        yield UNCHANGED
