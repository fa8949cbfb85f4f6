"""Options of stores, under the names of Hadoop or the cloud.

Secrets are read as :class:`hudi_core.config.options.Secret`. No store option is ever kept with a
table. A bucket of S3 may have options of its own, ``fs.s3a.bucket.NAME.x`` for ``fs.s3a.x``, as in
Hadoop.
"""

from __future__ import annotations

from typing import Final

from hudi_core.config.options import ConfigKey, Group, Options, Secret

_ENCRYPTIONS: Final = {"AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
"""Hadoop's names of what S3 encrypts by, and S3's own."""
_NOT_BY_THE_STORE: Final = {
    "SSE-C": "files of a customer's key are read with that key as well, which pyarrow's client of "
    "S3 cannot give",
    "CSE-KMS": "files are encrypted by the store, and not before they are sent",
    "CSE-CUSTOM": "files are encrypted by the store, and not before they are sent",
}


def s3_encryption(text: str) -> str | None:
    """Parse Hadoop's name of a server-side encryption into S3's."""
    if not text:
        return None
    found = _ENCRYPTIONS.get(text.upper())
    if found is None:
        known = f"supported are {', '.join(_ENCRYPTIONS)}"
        raise ValueError(_NOT_BY_THE_STORE.get(text.upper()) or f"it is not known; {known}")
    return found


class StoreKeys(Options, group=Group.STORAGE):
    """How stores are reached; read by :class:`hudi_core.storage.options.StorageOptions`."""

    fsync = ConfigKey(
        "hoodie.fs.fsync",
        default=True,
        hudi_default="(no such option; files are not flushed)",
        reason="A commit that was reported should survive a power failure.",
    )
    """Whether files of the timeline on local disks are flushed to the disk before a commit counts.
    Without it a power failure may lose the last commits, a crash of the process never."""
    s3_access_key = ConfigKey[Secret | None](
        "fs.s3a.access.key", aliases=("aws_access_key_id", "AWS_ACCESS_KEY_ID"), secret=True
    )
    """S3: id of the access key."""
    s3_secret_key = ConfigKey[Secret | None](
        "fs.s3a.secret.key", aliases=("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"), secret=True
    )
    """S3: the secret access key."""
    s3_session_token = ConfigKey[Secret | None](
        "fs.s3a.session.token", aliases=("aws_session_token", "AWS_SESSION_TOKEN"), secret=True
    )
    """S3: token of temporary credentials."""
    s3_endpoint = ConfigKey[str | None](
        "fs.s3a.endpoint",
        aliases=("aws_endpoint_url", "AWS_ENDPOINT_URL"),
        default_text="(Amazon's)",
    )
    """S3: address of another service with the same protocol."""
    s3_region = ConfigKey[str | None](
        "fs.s3a.endpoint.region", aliases=("aws_region", "AWS_REGION", "AWS_DEFAULT_REGION")
    )
    """S3: region of the bucket."""
    s3_path_style = ConfigKey("fs.s3a.path.style.access", default=False)
    """S3: whether the bucket is named in the path instead of the host."""
    s3_tls = ConfigKey("fs.s3a.connection.ssl.enabled", default=True)
    """S3: whether connections are encrypted; only for an endpoint without a scheme."""
    s3_encryption = ConfigKey(
        "fs.s3a.encryption.algorithm",
        parse=s3_encryption,
        aliases=("fs.s3a.server-side-encryption-algorithm",),
        default_text="(the bucket's)",
    )
    """S3: how the store encrypts what is written: `AES256` with its own key, `SSE-KMS` or
    `DSSE-KMS` with one of KMS. Nothing has to be given to read it. `SSE-C` and encryption by the
    client are refused."""
    s3_encryption_key = ConfigKey[Secret | None](
        "fs.s3a.encryption.key",
        aliases=("fs.s3a.server-side-encryption.key",),
        default_text="(that of the account)",
        secret=True,
    )
    """S3: id or ARN of the key of KMS that the store encrypts with."""
    gcs_key_file = ConfigKey[str | None](
        "fs.gs.auth.service.account.json.keyfile",
        aliases=(
            "google.cloud.auth.service.account.json.keyfile",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
    )
    """GCS: path of the service account's key file."""
    azure_account = ConfigKey[str | None](
        "fs.azure.account.name",
        aliases=("azure_storage_account_name", "AZURE_STORAGE_ACCOUNT_NAME"),
        default_text="(from the path)",
    )
    """Azure: name of the storage account."""
    azure_account_key = ConfigKey[Secret | None](
        "fs.azure.account.key",
        aliases=("azure_storage_account_key", "AZURE_STORAGE_ACCOUNT_KEY"),
        secret=True,
    )
    """Azure: key of the storage account."""
    azure_sas_token = ConfigKey[Secret | None](
        "fs.azure.sas.fixed.token",
        aliases=("azure_storage_sas_token", "AZURE_STORAGE_SAS_TOKEN"),
        secret=True,
    )
    """Azure: shared access signature."""
