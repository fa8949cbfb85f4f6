"""A driver in a process of its own, which may be killed; its diary says how each step ended."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from hudi_core.errors import CommitStateUnknownError, ConcurrentWriterError, HudiError
from tests.cluster.sessions import session
from tests.cluster.written import SERVICES, STEPS, Step
from tests.crash.place import LocalPlace, Place, S3Place
from tests.crash.tables import OPTIONS


def main(asked: str) -> None:
    """Do steps from a number on, until there are enough or this process is killed."""
    given = json.loads(asked)
    place: Place = S3Place(**given["s3"]) if given["s3"] else LocalPlace(Path(given["path"]))
    spark = session(given["url"], Path(given["folder"]))
    with Path(given["diary"]).open("a", buffering=1) as diary:
        diary.write("ready 0\n")
        for number in range(given["first"], given["first"] + given["count"]):
            diary.write(f"began {number}\n")
            step = STEPS[given["steps"]](given["seed"], number)
            diary.write(f"{_done(place, spark, step)} {number}\n")
    spark.stop()


def _done(place: Place, spark: SparkSession, step: Step) -> str:
    while True:
        try:
            step.run(place.open({**OPTIONS, **SERVICES}), spark)
        except ConcurrentWriterError:
            time.sleep(0.5)  # a dead one's last sign of life
        except CommitStateUnknownError:
            return "unknown"
        except HudiError as error:
            print(type(error).__name__, error, file=sys.stderr)
            return "failed"
        else:
            return "acked"


if __name__ == "__main__":
    main(sys.argv[1])
