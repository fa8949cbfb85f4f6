"""Where a table's Delta log is, and how deltalake reaches the store."""

from __future__ import annotations

from urllib.parse import quote

from delta_format.options import LOCATION
from hudi_core.spi import InvalidOptionError, MetaClientView

LOG_FOLDER = "_delta_log"


def root_of(meta_client: MetaClientView) -> str:
    """Return the Delta table's root: the table's folder, or its storage path.

    An absolute path or a URI.

    Files outside of it, and paths that lead out of it, are read by few engines only.
    """
    return meta_client.files.roots[0]


def require_same_root(meta_client: MetaClientView) -> None:
    """Refuse an option that names another root."""
    root, given = root_of(meta_client), LOCATION.read(meta_client)
    place = "table's folder" if meta_client.files.is_plain else "storage path"
    if given is not None and given.rstrip("/") not in (root, f"file://{root}", ""):
        raise InvalidOptionError(
            "hoodie.table.format.delta.location",
            given,
            f"it is not the {place}, {root}",
            "Leave it out.",
        )


def table_uri(meta_client: MetaClientView) -> str:
    """Return the root as deltalake takes it."""
    root = root_of(meta_client)
    # a local path is taken as it is when it is a URI, but not when it holds what looks like one
    if root.startswith("/"):
        return f"file://{quote(root)}"
    # Hadoop's oldest scheme of S3 is unknown to deltalake
    return f"s3://{root.removeprefix('s3n://')}" if root.startswith("s3n://") else root


def store_options(meta_client: MetaClientView) -> dict[str, str]:
    """deltalake's storage options of the table's store; empty for local tables."""
    bucket = root_of(meta_client).partition("://")[2].partition("/")[0]
    return meta_client.storage_options.at(bucket).for_object_store()
