"""Options of the stores that hold tables; the names are Hadoop's, or each cloud's own.

Secrets are read as :class:`hudi_core.config.key.Secret`. No store option is ever kept with a table.
"""

from __future__ import annotations

from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group, Secret
from hudi_core.config.parsers import boolean, text_or_none


def secret(text: str) -> Secret | None:
    """Parse a text that must not show itself; a blank one counts as not given."""
    return Secret(text) if text else None


FSYNC: Final = ConfigKey(
    key="hoodie.fs.fsync",
    default=True,
    parse=boolean,
    doc="Whether files of the timeline on local disks are flushed to the disk before a commit "
    "counts. Without it a power failure may lose the last commits, a crash of the process never.",
    group=Group.STORAGE,
    hudi_default="(no such option; files are not flushed)",
    reason="A commit that was reported should survive a power failure.",
)
S3_ACCESS_KEY: Final = ConfigKey(
    key="fs.s3a.access.key",
    aliases=("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    default=None,
    default_text="(none)",
    parse=secret,
    doc="S3: id of the access key.",
    group=Group.STORAGE,
    secret=True,
)
S3_SECRET_KEY: Final = ConfigKey(
    key="fs.s3a.secret.key",
    aliases=("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    default=None,
    default_text="(none)",
    parse=secret,
    doc="S3: the secret access key.",
    group=Group.STORAGE,
    secret=True,
)
S3_SESSION_TOKEN: Final = ConfigKey(
    key="fs.s3a.session.token",
    aliases=("aws_session_token", "AWS_SESSION_TOKEN"),
    default=None,
    default_text="(none)",
    parse=secret,
    doc="S3: token of temporary credentials.",
    group=Group.STORAGE,
    secret=True,
)
S3_ENDPOINT: Final = ConfigKey(
    key="fs.s3a.endpoint",
    aliases=("aws_endpoint_url", "AWS_ENDPOINT_URL"),
    default=None,
    default_text="(Amazon's)",
    parse=text_or_none,
    doc="S3: address of another service with the same protocol.",
    group=Group.STORAGE,
)
S3_REGION: Final = ConfigKey(
    key="fs.s3a.endpoint.region",
    aliases=("aws_region", "AWS_REGION", "AWS_DEFAULT_REGION"),
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="S3: region of the bucket.",
    group=Group.STORAGE,
)
S3_PATH_STYLE: Final = ConfigKey(
    key="fs.s3a.path.style.access",
    default=False,
    parse=boolean,
    doc="S3: whether the bucket is named in the path instead of the host.",
    group=Group.STORAGE,
)
S3_TLS: Final = ConfigKey(
    key="fs.s3a.connection.ssl.enabled",
    default=True,
    parse=boolean,
    doc="S3: whether connections are encrypted; only for an endpoint without a scheme.",
    group=Group.STORAGE,
)
GCS_KEY_FILE: Final = ConfigKey(
    key="fs.gs.auth.service.account.json.keyfile",
    aliases=(
        "google.cloud.auth.service.account.json.keyfile",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="GCS: path of the service account's key file.",
    group=Group.STORAGE,
)
AZURE_ACCOUNT: Final = ConfigKey(
    key="fs.azure.account.name",
    aliases=("azure_storage_account_name", "AZURE_STORAGE_ACCOUNT_NAME"),
    default=None,
    default_text="(from the path)",
    parse=text_or_none,
    doc="Azure: name of the storage account.",
    group=Group.STORAGE,
)
AZURE_ACCOUNT_KEY: Final = ConfigKey(
    key="fs.azure.account.key",
    aliases=("azure_storage_account_key", "AZURE_STORAGE_ACCOUNT_KEY"),
    default=None,
    default_text="(none)",
    parse=secret,
    doc="Azure: key of the storage account.",
    group=Group.STORAGE,
    secret=True,
)
AZURE_SAS_TOKEN: Final = ConfigKey(
    key="fs.azure.sas.fixed.token",
    aliases=("azure_storage_sas_token", "AZURE_STORAGE_SAS_TOKEN"),
    default=None,
    default_text="(none)",
    parse=secret,
    doc="Azure: shared access signature.",
    group=Group.STORAGE,
    secret=True,
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    FSYNC,
    S3_ACCESS_KEY,
    S3_SECRET_KEY,
    S3_SESSION_TOKEN,
    S3_ENDPOINT,
    S3_REGION,
    S3_PATH_STYLE,
    S3_TLS,
    GCS_KEY_FILE,
    AZURE_ACCOUNT,
    AZURE_ACCOUNT_KEY,
    AZURE_SAS_TOKEN,
)
