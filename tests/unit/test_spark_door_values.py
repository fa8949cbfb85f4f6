"""What the data source ``hudi`` makes of Spark's values, without a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import datasource as spark
from pyspark.sql.types import LongType, StringType, StructType

import hudi_core as hudi
from hudi_core.engine.spark.shipping import guarded
from hudi_core.errors import InvalidOptionError
from hudi_core.storage.hadoop import hadoop_options, hadoop_schemes, with_scheme
from hudi_core.storage.options import StorageOptions
from pyspark_hudi import DefaultSource
from pyspark_hudi.options import SourceOptions
from pyspark_hudi.reader import HudiReader


class TestOptions:
    def test_names_get_their_spelling_back(self) -> None:
        given = {"hoodie.table.name": "T", "aws_access_key_id": "K", "other.Thing": "x"}
        # Spark's dictionary lowers names
        lowered = spark.CaseInsensitiveDict({"path": "/lake/t", **given})
        options = SourceOptions.of(lowered)
        assert options.path == "/lake/t"
        assert options.given == {name.lower(): text for name, text in given.items()}
        assert options.mode is None

    def test_a_path_is_the_same_place_for_every_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert SourceOptions.of({"path": "t"}).path == str(tmp_path / "t")
        assert SourceOptions.of({"path": "s3://b/t/"}).path == "s3://b/t"

    @pytest.mark.parametrize(
        ("told", "overwrite", "mode"),
        [
            (None, False, "append"),
            (None, True, "overwrite"),
            ("Ignore", False, "ignore"),
            ("overwrite", False, "overwrite"),
            ("overwrite", True, "overwrite"),
        ],
    )
    def test_modes(self, told: str | None, overwrite: bool, mode: str) -> None:
        options = {"path": "/t"} | ({"mode": told} if told else {})
        assert SourceOptions.of(options).save_mode(overwrite) == mode

    def test_contradictions_are_refused(self) -> None:
        with pytest.raises(InvalidOptionError, match="overwrite"):
            SourceOptions.of({"path": "/t", "mode": "append"}).save_mode(True)
        with pytest.raises(InvalidOptionError, match="path is missing"):
            SourceOptions.of({})


@pytest.fixture
def reader(tmp_path: Path) -> HudiReader:
    rows = pa.table({"id": ["a", "b", "c"], "city": ["rome", "oslo", "lima"], "n": [1, 2, 3]})
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
    }
    hudi.write(rows, str(tmp_path / "t"), "append", options)
    schema = StructType().add("n", LongType()).add("id", StringType()).add("city", StringType())
    return HudiReader(SourceOptions.of({"path": str(tmp_path / "t")}), schema)


def read_all(reader: HudiReader) -> list[Any]:
    partitions = reader.partitions()
    there = cloudpickle.loads(cloudpickle.dumps(reader))  # type: ignore[no-untyped-call]
    return [row for each in partitions for batch in there.read(each) for row in batch.to_pylist()]


class TestReader:
    def test_it_reads_the_named_columns_where_it_is_sent(self, reader: HudiReader) -> None:
        found = sorted(read_all(reader), key=lambda row: str(row["id"]))
        assert found == [
            {"n": 1, "id": "a", "city": "rome"},
            {"n": 2, "id": "b", "city": "oslo"},
            {"n": 3, "id": "c", "city": "lima"},
        ]

    def test_no_files_are_no_rows(self, reader: HudiReader) -> None:
        there = cloudpickle.loads(cloudpickle.dumps(reader))  # type: ignore[no-untyped-call]
        assert list(there.read(spark.InputPartition(None))) == []

    def test_secrets_and_plan_stay_behind(self, reader: HudiReader) -> None:
        assert set(reader.shipped()) == {"_scan", "_schema"}

    def test_spark_takes_it_for_a_reader_without_filters(self, reader: HudiReader) -> None:
        assert type(reader).pushFilters is spark.DataSourceReader.pushFilters


ELSEWHERE = """
import sys
sys.modules["pyspark_hudi"] = sys.modules["hudi_core"] = None  # importing them fails
from pyspark import cloudpickle
try:
    list(cloudpickle.loads(sys.stdin.buffer.read())(iter([])))
except ImportError as error:
    print(error)
"""


@pytest.mark.impure
@pytest.mark.parametrize("what", ["source", "function"])
def test_an_executor_without_the_wheel_is_told_the_way(what: str) -> None:
    source = DefaultSource({"path": "/t"})

    def uses_source(_: Any) -> Any:
        yield source

    sent = uses_source if what == "source" else guarded(uses_source)
    packed = cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
    command = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(command, input=packed, capture_output=True, check=False)
    told = done.stdout.decode()
    assert sys.executable in told, done.stderr.decode()
    assert "spark.addArtifacts" in told
    assert "pyspark_hudi" in told


class TestHadoop:
    def test_schemes(self) -> None:
        assert hadoop_schemes("/lake/t") == ("file",)
        assert hadoop_schemes("s3://b/t") == ("s3", "s3a")
        assert hadoop_schemes("S3A://b/t") == ("s3a",)
        assert hadoop_schemes("gcs://b/t") == ("gcs", "gs")
        assert hadoop_schemes("abfss://c@a.dfs.core.windows.net/t") == ("abfss",)
        assert with_scheme("s3://b/t/x.parquet", "s3a") == "s3a://b/t/x.parquet"
        assert with_scheme("/lake/t", "file") == "/lake/t"

    def test_options(self) -> None:
        given = {
            "fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b",
            "fs.s3a.session.token": "c",
            "fs.s3a.endpoint": "http://127.0.0.1:9000",
            "fs.s3a.endpoint.region": "us-east-1",
        }
        found = hadoop_options("s3://b/t", StorageOptions.from_options(given, {}))
        assert found == given | {
            "fs.s3a.path.style.access": "true",
            "fs.s3a.aws.credentials.provider": (
                "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
            ),
        }
        assert hadoop_options("s3://b/t", StorageOptions.from_options({}, {})) == {}
        assert hadoop_options("/lake/t", StorageOptions.from_options(given, {})) == {}
