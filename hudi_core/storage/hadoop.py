"""Hadoop's names and options of a store, for JVM readers."""

from __future__ import annotations

from typing import Final

from hudi_core.config.storage import StoreKeys
from hudi_core.storage.location import StoreKind, parse_location
from hudi_core.storage.options import StorageOptions

_TOKEN_PROVIDER: Final = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"  # noqa: S105


def hadoop_schemes(uri: str) -> tuple[str, ...]:
    """Return URI schemes of the store for a JVM, the user's first."""
    kind = parse_location(uri).kind
    if kind is StoreKind.LOCAL:
        return ("file",)
    own = uri.partition("://")[0].lower()
    further = {StoreKind.S3: ("s3a",), StoreKind.GCS: ("gs",)}.get(kind, ())
    return tuple(dict.fromkeys((own, *further)))


def with_scheme(uri: str, scheme: str) -> str:
    """Return a URI under another scheme; local paths stay as they are."""
    _, separator, rest = uri.partition("://")
    return f"{scheme}://{rest}" if separator else uri


def hadoop_options(uri: str, options: StorageOptions) -> dict[str, str]:
    """Return Hadoop's options of the store.

    What is not given the JVM finds out itself.
    """
    if parse_location(uri).kind is not StoreKind.S3:
        return {}
    found = _hadoop_options(options)
    for bucket, own in options.buckets:
        of_bucket = _hadoop_options(own).items()
        prefix = f"fs.s3a.bucket.{bucket}."
        found |= {f"{prefix}{key.removeprefix('fs.s3a.')}": value for key, value in of_bucket}
    return found


def _hadoop_options(options: StorageOptions) -> dict[str, str]:
    found = {
        StoreKeys.s3_endpoint.key: options.s3_endpoint,
        StoreKeys.s3_region.key: options.s3_region,
        StoreKeys.s3_path_style.key: "true" if options.s3_path_style else None,
    }
    for key, secret in (
        (StoreKeys.s3_access_key.key, options.s3_access_key),
        (StoreKeys.s3_secret_key.key, options.s3_secret_key),
        (StoreKeys.s3_session_token.key, options.s3_session_token),
    ):
        found[key] = secret.reveal() if secret else None
    if options.s3_session_token:
        found["fs.s3a.aws.credentials.provider"] = _TOKEN_PROVIDER
    return {key: value for key, value in found.items() if value is not None}
