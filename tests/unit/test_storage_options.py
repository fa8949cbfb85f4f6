"""Options of stores: one test per key and client, and secrets that stay secret."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from hudi_core.config.key import Secret
from hudi_core.errors import InvalidOptionError
from hudi_core.storage.location import StoreKind
from hudi_core.storage.options import StorageOptions

KEYS = {"fs.s3a.access.key": "id-canary", "fs.s3a.secret.key": "secret-canary"}


def options(given: dict[str, str], environment: dict[str, str] | None = None) -> StorageOptions:
    return StorageOptions.from_options(given, environment or {})


def obstore_s3(given: StorageOptions) -> dict[str, Any]:
    return given.for_obstore(StoreKind.S3, "lake")


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"fs.s3a.endpoint": "http://h:1"}, "s3_endpoint", "http://h:1"),
        ({"fs.s3a.endpoint": "h:1"}, "s3_endpoint", "https://h:1"),
        (
            {"fs.s3a.endpoint": "h:1", "fs.s3a.connection.ssl.enabled": "false"},
            "s3_endpoint",
            "http://h:1",
        ),
        ({"aws_endpoint_url": "http://h:1"}, "s3_endpoint", "http://h:1"),
        ({"fs.s3a.endpoint.region": "eu-1"}, "s3_region", "eu-1"),
        ({"aws_region": "eu-1"}, "s3_region", "eu-1"),
        ({"fs.s3a.path.style.access": "true"}, "s3_path_style", True),
        ({"fs.s3a.encryption.algorithm": "AES256"}, "s3_encryption", "AES256"),
        ({"fs.s3a.encryption.algorithm": "sse-kms"}, "s3_encryption", "aws:kms"),
        ({"fs.s3a.server-side-encryption-algorithm": "DSSE-KMS"}, "s3_encryption", "aws:kms:dsse"),
        ({"fs.gs.auth.service.account.json.keyfile": "/k.json"}, "gcs_key_file", "/k.json"),
        ({"fs.azure.account.name": "acme"}, "azure_account", "acme"),
        ({"fs.azure.account.key": "k"}, "azure_account_key", Secret("k")),
        ({"fs.azure.sas.fixed.token": "t"}, "azure_sas_token", Secret("t")),
        ({**KEYS, "fs.s3a.session.token": "t"}, "s3_session_token", Secret("t")),
        (KEYS, "s3_access_key", Secret("id-canary")),
        (KEYS, "s3_secret_key", Secret("secret-canary")),
    ],
)
def test_a_key_sets_its_field(given: dict[str, str], field: str, value: object) -> None:
    assert getattr(options(given), field) == value
    others = {name for name in StorageOptions.__dataclass_fields__ if name != field}
    changed = {n for n in others if getattr(options(given), n) != getattr(options({}), n)}
    assert changed <= {"s3_access_key", "s3_secret_key", "s3_path_style"}


@pytest.mark.parametrize(
    ("environment", "field", "value"),
    [
        ({"AWS_ENDPOINT_URL": "http://h:1"}, "s3_endpoint", "http://h:1"),
        (
            {"AWS_ENDPOINT_URL": "http://h:1", "AWS_ENDPOINT_URL_S3": "http://s3:1"},
            "s3_endpoint",
            "http://s3:1",
        ),
        ({"AWS_REGION": "eu-1", "AWS_DEFAULT_REGION": "us-2"}, "s3_region", "eu-1"),
        ({"AWS_REGION": " ", "AWS_DEFAULT_REGION": "us-2"}, "s3_region", "us-2"),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "/k.json"}, "gcs_key_file", "/k.json"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "acme"}, "azure_account", "acme"),
        ({"AZURE_STORAGE_ACCOUNT_KEY": "k"}, "azure_account_key", Secret("k")),
        ({"AZURE_STORAGE_SAS_TOKEN": "t"}, "azure_sas_token", Secret("t")),
        (
            {"AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"},
            "s3_session_token",
            Secret("t"),
        ),
    ],
)
def test_the_environment_answers_what_options_leave_open(
    environment: dict[str, str], field: str, value: object
) -> None:
    assert getattr(options({}, environment), field) == value


def test_options_go_before_the_environment() -> None:
    environment = {"AWS_REGION": "us-2", "AWS_ENDPOINT_URL_S3": "http://s3:1"}
    found = options(
        {"fs.s3a.endpoint.region": "eu-1", "fs.s3a.endpoint": "http://h:1"}, environment
    )
    assert (found.s3_region, found.s3_endpoint) == ("eu-1", "http://h:1")


def test_credentials_come_from_one_source() -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "other",
        "AWS_SECRET_ACCESS_KEY": "other",
        "AWS_SESSION_TOKEN": "other",
        "AZURE_STORAGE_SAS_TOKEN": "other",
    }
    found = options({**KEYS, "fs.azure.account.key": "k"}, environment)
    assert found.s3_access_key == Secret("id-canary")
    assert found.s3_session_token is None
    assert found.azure_sas_token is None


@pytest.mark.parametrize("given", [*KEYS])
def test_half_of_a_key_pair_is_an_error(given: str) -> None:
    [missing] = set(KEYS) - {given}
    environment = {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}
    with pytest.raises(InvalidOptionError, match=f"{missing} is missing") as caught:
        options({given: "canary"}, environment)
    assert caught.value.key == given
    assert "canary" not in str(caught.value) + repr(caught.value.facts)


def test_two_names_of_one_option_that_differ_are_an_error() -> None:
    with pytest.raises(InvalidOptionError):
        options({"fs.s3a.endpoint.region": "eu-1", "aws_region": "us-2"})


def test_a_service_of_ones_own_is_called_by_path_unless_told_otherwise() -> None:
    assert options({}).s3_path_style is False
    assert options({"fs.s3a.endpoint": "http://h:1"}).s3_path_style is True
    told = {"fs.s3a.endpoint": "http://h:1", "fs.s3a.path.style.access": "false"}
    assert options(told).s3_path_style is False


@pytest.mark.parametrize("key", ["encryption.key", "server-side-encryption.key"])
def test_a_key_of_the_store_goes_to_the_clients_that_write(key: str) -> None:
    found = options({"fs.s3a.encryption.algorithm": "SSE-KMS", f"fs.s3a.{key}": "arn:canary"})
    assert found.s3_encryption_key == Secret("arn:canary")
    assert "canary" not in repr(found)
    config = obstore_s3(found)["config"]
    assert (config["server_side_encryption"], config["sse_kms_key_id"]) == ("aws:kms", "arn:canary")
    config = found.for_object_store()
    assert config["aws_server_side_encryption"] == "aws:kms"
    assert config["aws_sse_kms_key_id"] == "arn:canary"
    assert found.for_pyarrow(StoreKind.S3) == options({}).for_pyarrow(StoreKind.S3)
    assert found.for_readers == options({})


def test_s3_for_obstore() -> None:
    assert obstore_s3(options({})) == {"config": {"virtual_hosted_style_request": True}}
    found = obstore_s3(
        options({**KEYS, "fs.s3a.endpoint": "http://h:1/", "fs.s3a.endpoint.region": "eu-1"})
    )
    provider = found.pop("credential_provider")
    assert found == {
        "config": {
            "region": "eu-1",
            "virtual_hosted_style_request": False,
            "endpoint": "http://h:1",
            "aws_endpoint_url_s3": "http://h:1",
        },
        "client_options": {"allow_http": True},
    }
    assert provider() == {
        "access_key_id": "id-canary",
        "secret_access_key": "secret-canary",
        "token": None,
        "expires_at": None,
    }


def test_s3_for_obstore_with_the_bucket_in_the_host() -> None:
    given = {"fs.s3a.endpoint": "https://h:1", "fs.s3a.path.style.access": "false"}
    found = obstore_s3(options(given))
    assert found["config"]["endpoint"] == "https://lake.h:1"
    assert found["config"]["virtual_hosted_style_request"] is True
    assert found["client_options"] == {"allow_http": False}


def test_s3_for_pyarrow() -> None:
    assert options({}).for_pyarrow(StoreKind.S3) == {"allow_delayed_open": True}
    given = {
        **KEYS,
        "fs.s3a.session.token": "t",
        "fs.s3a.endpoint": "http://h:1/",
        "fs.s3a.endpoint.region": "eu-1",
    }
    assert options(given).for_pyarrow(StoreKind.S3) == {
        "access_key": "id-canary",
        "secret_key": "secret-canary",
        "session_token": "t",
        "region": "eu-1",
        "scheme": "http",
        "endpoint_override": "h:1",
        "force_virtual_addressing": False,
        "allow_delayed_open": True,
    }


def test_azure_for_both_clients() -> None:
    given = options(
        {
            "fs.azure.account.name": "acme",
            "fs.azure.account.key": "k",
            "fs.azure.sas.fixed.token": "t",
        }
    )
    assert given.for_obstore(StoreKind.AZURE, "box") == {
        "config": {"account_name": "acme", "account_key": "k", "sas_key": "t"}
    }
    assert given.for_pyarrow(StoreKind.AZURE) == {
        "account_name": "acme",
        "account_key": "k",
        "sas_token": "t",
    }
    # the account in the path goes before the option
    assert given.for_obstore(StoreKind.AZURE, "box", "other")["config"]["account_name"] == "other"
    assert given.for_pyarrow(StoreKind.AZURE, "other")["account_name"] == "other"


def test_gcs_for_both_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/k.json")
    given = StorageOptions.from_options({})
    assert given.for_obstore(StoreKind.GCS, "lake") == {"config": {"service_account": "/k.json"}}
    assert given.for_pyarrow(StoreKind.GCS) == {}


@pytest.mark.parametrize("kind", [StoreKind.LOCAL, StoreKind.MEMORY])
def test_other_stores_need_nothing(kind: StoreKind) -> None:
    assert options(KEYS).for_obstore(kind, "") == {}
    assert options(KEYS).for_pyarrow(kind) == {}


def test_secrets_do_not_show() -> None:
    given = options({**KEYS, "fs.s3a.session.token": "canary", "fs.azure.account.key": "canary"})
    provider = obstore_s3(given)["credential_provider"]
    assert "canary" not in f"{given} {given!r} {provider!r} {provider}"


def test_options_cross_to_executors_and_are_keys_of_caches() -> None:
    given = options({**KEYS, "fs.s3a.endpoint": "http://h:1"})
    for other in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given)):
        assert other == given
        assert hash(other) == hash(given)
