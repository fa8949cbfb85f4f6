"""A Hive metastore for tests, made of PySpark's jars.

It runs in a Java process of its own, keeps what it knows in a Derby database in a folder, and
speaks Thrift on the loopback device. The metastore's own main class would listen on every device,
and its log needs a library that PySpark does not have; so its parts are put together here, from
Python.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from filelock import FileLock
from hive_metastore import ThriftHiveMetastore
from py4j.java_gateway import JavaGateway
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport import TTransport
from thrift.transport.TSocket import TSocket

from hudi_conformance.java_process import java_process, make

_METASTORE: Final = "org.apache.hadoop.hive.metastore"
_SERVER: Final = "org.apache.thrift.server.TThreadPoolServer"


@dataclass(frozen=True)
class HiveMetastore:
    """A metastore that answers.

    Attributes
    ----------
    port
        Where it listens, on this machine.
    warehouse
        Folder of the tables that it places itself.
    """

    port: int
    warehouse: Path

    @property
    def uri(self) -> str:
        """The address as clients want it."""
        return f"thrift://127.0.0.1:{self.port}"

    @contextmanager
    def client(self) -> Iterator[ThriftHiveMetastore.Client]:
        """Connect to its Thrift interface, as Hive, Spark and Trino do."""
        transport = TTransport.TBufferedTransport(TSocket("127.0.0.1", self.port))
        transport.open()
        try:
            yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        finally:
            transport.close()


@contextmanager
def shared_metastore(folder: Path) -> Iterator[HiveMetastore]:
    """Run one metastore for all processes of a test run that share a folder.

    Who asks first starts it, and stops it once no test uses it any more.
    """
    known = folder / "hive_metastore.json"
    with ExitStack() as mine, open(folder / "hive_metastore.users", "a", encoding="utf-8") as users:
        with FileLock(folder / "hive_metastore.lock"):
            if known.exists():
                port, warehouse = json.loads(known.read_text(encoding="utf-8"))
                service = HiveMetastore(port, Path(warehouse))
                has_started = False
            else:
                own = folder / f"hive_metastore_{os.getpid()}"
                own.mkdir()
                service = mine.enter_context(hive_metastore(own))
                known.write_text(json.dumps([service.port, str(service.warehouse)]))
                has_started = True
            fcntl.flock(users, fcntl.LOCK_SH)  # a process that ends gives it back
        try:
            yield service
        finally:
            if has_started:
                with FileLock(folder / "hive_metastore.lock"):
                    known.unlink()
                fcntl.flock(users, fcntl.LOCK_EX)


@contextmanager
def hive_metastore(folder: Path, lock_s: int | None = None) -> Iterator[HiveMetastore]:
    """Run a metastore whose database and warehouse are in a folder.

    Parameters
    ----------
    lock_s
        Seconds after which it takes a lock away from who is not heard of. By default it does not,
        as its housekeeping runs only in its own main class.
    """
    settings = {
        "javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder}/metastore_db;create=true"
        ),
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.connectionPoolingType": "none",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        "hive.async.log.enabled": "false",
    }
    if lock_s is not None:
        settings["hive.txn.timeout"] = f"{lock_s}s"
    options = (f"-Dderby.system.home={folder}", "-Dlog4j2.level=ERROR")
    with java_process(folder, options) as gateway:
        server, port = _server(gateway, settings)
        thread = threading.Thread(target=server.serve, name="hive-metastore", daemon=True)
        thread.start()
        ended = threading.Event()
        keeper = threading.Thread(target=_keep_house, args=(gateway, settings, ended))
        if lock_s is not None:
            keeper.start()
        try:
            yield HiveMetastore(port, folder / "warehouse")
        finally:
            ended.set()
            if lock_s is not None:
                keeper.join()
            server.stop()
            thread.join()


def _keep_house(gateway: JavaGateway, settings: dict[str, str], ended: threading.Event) -> None:
    """Take locks away whose holders are not heard of."""
    hive = gateway.jvm.org.apache.hadoop.hive
    store = hive.metastore.txn.TxnUtils.getTxnStore(_conf(gateway, settings))
    while not ended.wait(0.5):
        store.performTimeOuts()


def _conf(gateway: JavaGateway, settings: dict[str, str]) -> Any:
    conf = gateway.jvm.org.apache.hadoop.hive.conf.HiveConf()
    for key, value in settings.items():
        conf.set(key, value)
    return conf


def _server(gateway: JavaGateway, settings: dict[str, str]) -> tuple[Any, int]:
    """Return a Thrift server of a metastore, and the port that it is bound to."""
    java = gateway.jvm
    hive = java.org.apache.hadoop.hive
    conf = _conf(gateway, settings)
    handler = make(gateway, f"{_METASTORE}.HiveMetaStore$HMSHandler", "tests", conf, False)
    # makes the default database, and with it the tables of its own
    handler = hive.metastore.RetryingHMSHandler.getProxy(conf, handler, True)
    hive.metastore.txn.TxnDbUtil.prepDb(conf)  # those of locks
    address = java.java.net.InetSocketAddress("127.0.0.1", 0)
    socket = java.org.apache.thrift.transport.TServerSocket(address)
    arguments = make(gateway, f"{_SERVER}$Args", socket)
    arguments.processor(make(gateway, f"{_METASTORE}.TSetIpAddressProcessor", handler))
    arguments.maxWorkerThreads(32)
    arguments.stopTimeoutVal(1)  # clients that are still connected are not waited for
    return make(gateway, _SERVER, arguments), socket.getServerSocket().getLocalPort()
