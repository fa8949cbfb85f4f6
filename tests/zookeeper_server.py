"""A ZooKeeper of this test run: that of PySpark's jars, in a Java process of its own.

Its own main class would listen where a configuration file says, and open a second port; so it is
put together here, from Python. The same process has Curator, whose locks Hudi takes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hudi_conformance.java_process import java_process, make
from kazoo.client import KazooClient
from py4j.java_gateway import JavaGateway

_CURATOR: Final = "org.apache.curator.framework"
_TICK_MS: Final = 500
_LONGEST_SESSION_MS: Final = 60_000


@dataclass(frozen=True)
class ZooKeeper:
    """A server that answers.

    ``hosts``: its address as clients want it.
    """

    hosts: str
    gateway: JavaGateway

    @contextmanager
    def mutex(self, path: str) -> Iterator[Any]:
        """Curator's lock on a node, the one that Hudi takes, in a session of its own."""
        java = self.gateway.jvm.org.apache.curator
        retry = java.retry.RetryOneTime(100)
        client = java.framework.CuratorFrameworkFactory.newClient(self.hosts, retry)
        client.start()
        try:
            yield make(self.gateway, f"{_CURATOR}.recipes.locks.InterProcessMutex", client, path)
        finally:
            client.close()


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[ZooKeeper]:
    """Run a server on the loopback device and a free port, whose data are in a folder."""
    # nothing here survives the run, so that no write waits for the disk
    options = ("-Dlog4j2.level=OFF", "-Dzookeeper.forceSync=no")
    with java_process(folder, options) as gateway:
        java = gateway.jvm.java
        data = java.io.File(f"{folder}/zookeeper")
        server = gateway.jvm.org.apache.zookeeper.server.ZooKeeperServer(data, data, _TICK_MS)
        server.setMaxSessionTimeout(_LONGEST_SESSION_MS)
        factory = gateway.jvm.org.apache.zookeeper.server.NIOServerCnxnFactory()
        factory.configure(java.net.InetSocketAddress("127.0.0.1", 0), 200)
        factory.startup(server)
        try:
            yield ZooKeeper(f"127.0.0.1:{factory.getLocalPort()}", gateway)
        finally:
            _close_clients()
            factory.shutdown()


def _close_clients() -> None:
    """End the sessions that tests have left: without a server they look for it for ever.

    Such a search is seen in whatever test runs then.
    """
    for client in [one for one in gc.get_objects() if type(one) is KazooClient]:
        client.stop()
        client.close()
