"""The Iceberg project's REST catalog, in a Java process of the test run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hudi_conformance.java_process import java_process


@contextmanager
def rest_catalog(folder: Path, jars: Path) -> Iterator[str]:
    """Serve a catalog that is kept in a folder, on the loopback device; give its address.

    ``jars``: folder of what ``pom.xml`` names.
    """
    with java_process(folder, first=jars) as gateway:
        java = gateway.jvm
        iceberg, jetty = java.org.apache.iceberg, java.org.eclipse.jetty
        properties = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{folder}/catalog.db",
            "jdbc.schema-version": "V1",
            "warehouse": f"file://{folder}/warehouse",
        }
        conf = java.org.apache.hadoop.conf.Configuration()
        catalog = iceberg.CatalogUtil.buildIcebergCatalog("tests", properties, conf)
        servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(catalog))
        context = jetty.servlet.ServletContextHandler()
        context.addServlet(jetty.servlet.ServletHolder(servlet), "/*")
        server = jetty.server.Server(java.java.net.InetSocketAddress("127.0.0.1", 0))
        server.setHandler(context)
        server.start()
        try:
            [connector] = server.getConnectors()
            yield f"http://127.0.0.1:{connector.getLocalPort()}"
        finally:
            server.stop()
