"""Access to a table's store: one value, translated for each client.

Pyarrow and obstore know the same facts under different names, and each looks into the environment
by itself, in its own order. So the environment is read here, once, and what is found is given to
both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from hudi_core.config.options import ConfigKey, Secret
from hudi_core.config.storage import StoreKeys
from hudi_core.errors import InvalidOptionError
from hudi_core.storage.location import StoreKind

_Value = TypeVar("_Value")
_S3_CREDENTIALS: Final[tuple[ConfigKey[Any], ...]] = (
    StoreKeys.s3_access_key,
    StoreKeys.s3_secret_key,
    StoreKeys.s3_session_token,
)
_AZURE_CREDENTIALS: Final[tuple[ConfigKey[Any], ...]] = (
    StoreKeys.azure_account_key,
    StoreKeys.azure_sas_token,
)
_S3: Final = "fs.s3a."
_OF_BUCKET: Final = f"{_S3}bucket."
_S3_KEYS: Final[tuple[ConfigKey[Any], ...]] = tuple(
    key for key in StoreKeys.keys if key.key.startswith(_S3)
)
_S3_ENCRYPTION: Final[tuple[ConfigKey[Any], ...]] = (
    StoreKeys.s3_encryption,
    StoreKeys.s3_encryption_key,
)
_ENCRYPTING: Final = re.compile(
    r"fs\.s3a\.(bucket\.(?P<bucket>.+)\.)?(encryption\.|server-side-encryption).*"
)
"""Options of Hadoop about encryption, of S3 or of one bucket."""
_ENDPOINT_FOR_S3: Final = "AWS_ENDPOINT_URL_S3"
_KEY_FILE_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Credentials and addresses; hashable, picklable, and silent about its secrets.

    What is ``None`` the clients find out themselves (instance roles, profiles, defaults).

    The S3 credentials all come from one source. ``s3_endpoint`` includes the scheme;
    ``s3_path_style`` names the bucket in the path instead of the host. ``s3_encryption`` is in the
    words of S3, ``None`` for what the bucket is set to, and ``s3_encryption_key`` is the KMS key
    for it. ``buckets`` are S3 buckets that are reached in another way, by name.
    """

    s3_access_key: Secret | None = None
    s3_secret_key: Secret | None = None
    s3_session_token: Secret | None = None
    s3_endpoint: str | None = None
    s3_region: str | None = None
    s3_path_style: bool = False
    s3_encryption: str | None = None
    s3_encryption_key: Secret | None = None
    gcs_key_file: str | None = None
    azure_account: str | None = None
    azure_account_key: Secret | None = None
    azure_sas_token: Secret | None = None
    buckets: tuple[tuple[str, StorageOptions], ...] = ()

    def at(self, bucket: str) -> StorageOptions:
        """The options of a bucket: its own, or those of all."""
        return dict(self.buckets).get(bucket, self)

    @property
    def for_readers(self) -> StorageOptions:
        """The same for who only reads what is in this bucket."""
        return replace(self, s3_encryption=None, s3_encryption_key=None, buckets=())

    @classmethod
    def from_options(
        cls, options: Mapping[str, str], environment: Mapping[str, str] | None = None
    ) -> StorageOptions:
        """Return the options of a user, completed from the environment.

        Credentials come from the options or from the environment, never some from each.

        An access key without its secret is refused, as is an encryption that the store clients
        cannot ask for.
        """
        _require_known_encryption(options)
        variables = os.environ if environment is None else environment
        source = _Source(options, variables)
        access, secret, token = source.group(_S3_CREDENTIALS)
        if (access is None) is not (secret is None):
            missing, given = StoreKeys.s3_access_key.key, StoreKeys.s3_secret_key.key
            if secret is None:
                missing, given = given, missing
            raise InvalidOptionError(
                given,
                "***",
                f"{missing} is missing",
                "Give both, or neither for an instance's role.",
            )
        account_key, sas_token = source.group(_AZURE_CREDENTIALS)
        encryption, encryption_key = _encryption(options)
        endpoint = source.read(StoreKeys.s3_endpoint, first=(_ENDPOINT_FOR_S3,))
        if endpoint is not None and "://" not in endpoint:
            endpoint = f"{'https' if source.read(StoreKeys.s3_tls) else 'http'}://{endpoint}"
        path_style = endpoint is not None  # Amazon alone is sure to have a host for every bucket
        if StoreKeys.s3_path_style.is_given(options):
            path_style = StoreKeys.s3_path_style.read(options)
        return cls(
            s3_access_key=access,
            s3_secret_key=secret,
            s3_session_token=token,
            s3_endpoint=endpoint,
            s3_region=source.read(StoreKeys.s3_region),
            s3_path_style=path_style,
            s3_encryption=encryption,
            s3_encryption_key=encryption_key,
            gcs_key_file=source.read(StoreKeys.gcs_key_file),
            azure_account=source.read(StoreKeys.azure_account),
            azure_account_key=account_key,
            azure_sas_token=sas_token,
            buckets=tuple(
                (bucket, cls.from_options(own, variables))
                for bucket, own in sorted(_by_bucket(options).items())
            ),
        )

    def for_obstore(
        self, kind: StoreKind, bucket: str, account: str | None = None
    ) -> dict[str, Any]:
        """Return the keyword arguments of obstore's class for a kind of store.

        ``account`` is the Azure account that the path names; it has precedence over the option.
        """
        match kind:
            case StoreKind.S3:
                return self._s3_for_obstore(bucket)
            case StoreKind.GCS:
                return _given({"config": _given({"service_account": self.gcs_key_file})})
            case StoreKind.AZURE:
                config = {
                    "account_name": account or self.azure_account,
                    "account_key": _revealed(self.azure_account_key),
                    "sas_key": _revealed(self.azure_sas_token),
                }
                return _given({"config": _given(config)})
        return {}

    def for_pyarrow(self, kind: StoreKind, account: str | None = None) -> dict[str, Any]:
        """Return keyword arguments of pyarrow's file system class.

        ``account`` is the Azure account that the path names; it has precedence over the option. A
        GCS key file other than the one in the environment is refused: pyarrow finds it only there.
        """
        match kind:
            case StoreKind.S3:
                arguments: dict[str, Any] = {
                    "access_key": _revealed(self.s3_access_key),
                    "secret_key": _revealed(self.s3_secret_key),
                    "session_token": _revealed(self.s3_session_token),
                    "region": self.s3_region,
                    # a small file takes one request instead of three
                    "allow_delayed_open": True,
                }
                if self.s3_endpoint is not None:
                    scheme, _, host = self.s3_endpoint.partition("://")
                    arguments["scheme"] = scheme
                    arguments["endpoint_override"] = host.rstrip("/")
                    arguments["force_virtual_addressing"] = not self.s3_path_style
                return _given(arguments)
            case StoreKind.GCS:
                if self.gcs_key_file not in (None, os.environ.get(_KEY_FILE_VARIABLE)):
                    raise InvalidOptionError(
                        StoreKeys.gcs_key_file.key,
                        self.gcs_key_file,
                        "data files are opened with the key file that the environment names",
                        f"Set {_KEY_FILE_VARIABLE} to the same path, here and on the executors.",
                    )
                return {}
            case StoreKind.AZURE:
                return _given(
                    {
                        "account_name": account or self.azure_account,
                        "account_key": _revealed(self.azure_account_key),
                        "sas_token": _revealed(self.azure_sas_token),
                    }
                )
        return {}

    def for_object_store(self) -> dict[str, str]:
        """Return options for libraries on the Rust crate object_store.

        These know the kind of store by themselves.
        """
        options = {
            "aws_access_key_id": _revealed(self.s3_access_key),
            "aws_secret_access_key": _revealed(self.s3_secret_key),
            "aws_session_token": _revealed(self.s3_session_token),
            "aws_region": self.s3_region,
            "aws_server_side_encryption": self.s3_encryption,
            "aws_sse_kms_key_id": _revealed(self.s3_encryption_key),
            "google_service_account": self.gcs_key_file,
            "azure_storage_account_name": self.azure_account,
            "azure_storage_account_key": _revealed(self.azure_account_key),
            "azure_storage_sas_key": _revealed(self.azure_sas_token),
        }
        if self.s3_endpoint is not None:
            options["aws_endpoint"] = self.s3_endpoint.rstrip("/")
            options["aws_virtual_hosted_style_request"] = str(not self.s3_path_style).lower()
            options["aws_allow_http"] = str(self.s3_endpoint.startswith("http://")).lower()
        return {key: value for key, value in options.items() if value is not None}

    def _s3_for_obstore(self, bucket: str) -> dict[str, Any]:
        config: dict[str, Any] = {
            "region": self.s3_region,
            "virtual_hosted_style_request": not self.s3_path_style,
            "server_side_encryption": self.s3_encryption,
            "sse_kms_key_id": _revealed(self.s3_encryption_key),
        }
        client: dict[str, Any] = {}
        if self.s3_endpoint is not None:
            scheme, _, host = self.s3_endpoint.rstrip("/").partition("://")
            # obstore takes the host as it is to be called, and prefers an endpoint for S3 alone,
            # which the environment may name
            called = host if self.s3_path_style else f"{bucket}.{host}"
            config["endpoint"] = config["aws_endpoint_url_s3"] = f"{scheme}://{called}"
            client["allow_http"] = scheme == "http"
        arguments: dict[str, Any] = {"config": _given(config)}
        if client:
            arguments["client_options"] = client
        if self.s3_access_key is not None and self.s3_secret_key is not None:
            # as configuration they would be mixed with a session token of the environment
            arguments["credential_provider"] = _FixedCredentials(
                self.s3_access_key, self.s3_secret_key, self.s3_session_token
            )
        return arguments


@dataclass(frozen=True, slots=True)
class _FixedCredentials:
    """Answers obstore's question for S3 credentials."""

    access_key: Secret
    secret_key: Secret
    session_token: Secret | None

    def __call__(self) -> dict[str, Any]:
        return {
            "access_key_id": self.access_key.reveal(),
            "secret_access_key": self.secret_key.reveal(),
            "token": _revealed(self.session_token),
            "expires_at": None,
        }


@dataclass(frozen=True, slots=True)
class _Source:
    options: Mapping[str, str]
    environment: Mapping[str, str]

    def read(self, key: ConfigKey[_Value], first: tuple[str, ...] = ()) -> _Value:
        return key.read(self.options) if key.is_given(self.options) else self._variable(key, first)

    def group(self, group: tuple[ConfigKey[Any], ...]) -> list[Any]:
        if any(key.is_given(self.options) for key in group):
            return [key.read(self.options) for key in group]
        return [self._variable(key) for key in group]

    def _variable(self, key: ConfigKey[_Value], first: tuple[str, ...] = ()) -> _Value:
        # unlike options, variables of one meaning may differ: the first one counts
        for name in (*first, *key.names):
            text = self.environment.get(name, "").strip()
            if text:
                return key.parse_as(name, text)
        return key.default


def _by_bucket(options: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Options of each bucket that has its own, by name.

    Hadoop's ``fs.s3a.bucket.NAME.x`` goes before ``fs.s3a.x``. A bucket with credentials of its own
    has none of the others.
    """
    found: dict[str, dict[str, str]] = {}
    # the longest first: the name of a bucket may have dots, and end as the name of an option begins
    names = sorted(
        (name for key in _S3_KEYS for name in key.names if name.startswith(_S3)),
        key=lambda name: -len(name),
    )
    for given, value in options.items():
        inner = given.removeprefix(_OF_BUCKET)
        for name in names if inner != given else ():
            bucket = inner.removesuffix(f".{name.removeprefix(_S3)}")
            if bucket and bucket != inner:
                found.setdefault(bucket, {})[name] = value
                break
    return {bucket: {**_common(options, own), **own} for bucket, own in found.items()}


def _common(options: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The options that a bucket shares, beside its own."""
    replaced = {name for key in _S3_KEYS if key.is_given(own) for name in key.names}
    credentials = {name for key in _S3_CREDENTIALS for name in key.names}
    if not credentials.isdisjoint(own):
        replaced |= credentials
    if StoreKeys.s3_encryption.is_given(own):
        replaced |= {*StoreKeys.s3_encryption_key.names}  # that of another algorithm
    return {
        name: value
        for name, value in options.items()
        if name not in replaced and not name.startswith(_OF_BUCKET)
    }


def _require_known_encryption(options: Mapping[str, str]) -> None:
    """Refuse options about encryption that would be without effect."""
    known = {name.removeprefix(_S3) for key in _S3_ENCRYPTION for name in key.names}
    for name in options:
        found = _ENCRYPTING.fullmatch(name)
        if found is None or name.removeprefix(_S3) in known:
            continue
        others = {one.key.removeprefix(_S3) for one in _S3_KEYS} | known
        if found["bucket"] and any(name.endswith(f".{one}") for one in others):
            continue
        raise InvalidOptionError(
            name,
            "***",
            "the clients of S3 that write files cannot be given it",
            f"Of S3's encryption {' and '.join(one.key for one in _S3_ENCRYPTION)} are supported; "
            "set the rest as the bucket's default.",
        )


def _encryption(options: Mapping[str, str]) -> tuple[str | None, Secret | None]:
    """How S3 is to encrypt what is written, and the key."""
    algorithm, key = (one.read(options) for one in _S3_ENCRYPTION)
    if key is not None and algorithm in (None, "AES256"):
        raise InvalidOptionError(
            StoreKeys.s3_encryption_key.key,
            "***",
            f"{StoreKeys.s3_encryption.key} is {algorithm or 'not given'}, which has no key",
            f"Set {StoreKeys.s3_encryption.key}=SSE-KMS.",
        )
    return algorithm, key


def _revealed(secret: Secret | None) -> str | None:
    return None if secret is None else secret.reveal()


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value not in (None, {})}
