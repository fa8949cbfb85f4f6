"""Sessions of drivers on a cluster, with speculation."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # a task that takes longer than most is run a second time beside itself
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.minTaskRuntime": "300ms",
    "spark.speculation.efficiency.enabled": "false",
    # executors die more often here than anywhere else
    "spark.task.maxFailures": "8",
    "spark.stage.maxConsecutiveAttempts": "20",
    "spark.network.timeout": "60s",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def session(url: str, folder: Path) -> SparkSession:
    """A session on a cluster.

    ``folder``: where its files go; an application's events are logged in ``events`` of it.
    """
    events = folder / "events"
    events.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(url).appName("cluster")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    found: SparkSession = (
        builder.config("spark.eventLog.dir", events.as_uri())
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    found.sparkContext.setLogLevel("OFF")
    return found


def counted_events(folder: Path) -> Counter[str]:
    """What the applications of a folder's sessions went through, by kind."""
    found = Counter[str]()
    for log in (folder / "events").iterdir():
        for line in log.read_text().splitlines():
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue  # the last line of a driver that was killed
            match event["Event"]:
                case "SparkListenerTaskEnd":
                    found["tasks"] += 1
                    facts, reason = event["Task Info"], event["Task End Reason"]["Reason"]
                    found["failed"] += bool(facts["Failed"])
                    found["speculative"] += bool(facts["Speculative"])
                    found[f"end {reason}"] += 1
                case "SparkListenerExecutorRemoved":
                    found["executors lost"] += 1
    return found
