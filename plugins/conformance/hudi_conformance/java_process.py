"""A Java process for servers that are built in it from Python.

PySpark has what it takes.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

JARS: Final = Path(pyspark.__file__).parent / "jars"
_PATIENCE_S: Final = 30


@contextmanager
def java_process(
    folder: Path, options: Sequence[str] = (), first: Path | None = None
) -> Iterator[JavaGateway]:
    """Run Java in a folder, for as long as this process lives at most.

    Parameters
    ----------
    options
        More options of the Java runtime.
    first
        A folder of jars that go before those of PySpark.
    """
    # a minimal system may not know its own name, which servers ask for
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n", encoding="utf-8")
    known = f"-Djdk.net.hosts.file={hosts}"
    classpath = ":".join(f"{one}/*" for one in (first, JARS) if one is not None)
    port, token, process = launch_gateway(
        classpath=classpath,
        jarpath=str(next(JARS.glob("py4j-*.jar"))),
        javaopts=["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", known, *options],
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
        cwd=str(folder),
    )
    try:
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            yield gateway
        finally:
            gateway.shutdown()
    finally:
        process.stdin.close()
        process.wait(_PATIENCE_S)


def make(gateway: JavaGateway, name: str, *arguments: Any) -> Any:
    """Return a new object of a class whose constructor py4j does not find by itself: that of a
    nested class, one that is not public, or one that takes a proxy."""
    values = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for number, value in enumerate(arguments):
        values[number] = value
    [made] = [
        one
        for one in gateway.jvm.java.lang.Class.forName(name).getDeclaredConstructors()
        if len(one.getParameterTypes()) == len(arguments)
    ]
    made.setAccessible(True)
    return made.newInstance(values)
