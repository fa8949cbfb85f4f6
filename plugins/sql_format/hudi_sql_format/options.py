"""The options of the format."""

from __future__ import annotations

from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from hudi_core.spi import FormatOption

NAME: Final = "sql"
_DRIVER: Final = "postgresql+psycopg"
_ALLOWED: Final = frozenset({"application_name", "connect_timeout", "sslmode"})
"""What a URL may say of a connection; other words of the driver name files of this machine."""


def _url(text: str) -> URL:
    try:
        found = make_url(text)
    except ArgumentError as error:
        raise ValueError("it is no URL: use the form postgresql://user@host:port/database") from (
            error
        )
    if found.drivername not in ("postgresql", _DRIVER):
        raise ValueError("databases of this kind are not supported, PostgreSQL is")
    if found.password is not None:
        raise ValueError("the table would keep the password; give it as the option `password`")
    if not (found.host and found.database):
        raise ValueError("it names no host, or no database")
    unknown = sorted(found.query.keys() - _ALLOWED)
    if unknown:
        raise ValueError(f"{unknown[0]} cannot be given here; {', '.join(sorted(_ALLOWED))} can")
    return found.set(drivername=_DRIVER)


URL_OPTION: Final = FormatOption[URL | None](
    "url",
    None,
    _url,
    "PostgreSQL database that holds the metadata, as postgresql://user@host:port/database, without "
    "a password.",
    default_text="(none: an SQLite file in the table's folder)",
    is_stored=True,
)
PASSWORD: Final = FormatOption[str | None](
    "password",
    None,
    str,
    "Password for the database. Not kept; without it the driver looks for PGPASSWORD and ~/.pgpass."
    " It is sent to the server that the table names: give `url`, too, where the table may have been"
    " written by another party.",
)
TABLE: Final = FormatOption[str | None](
    "table",
    None,
    str,
    "Name of the table in the database.",
    default_text="(the table's own folder)",
    is_stored=True,
)
LOCATION: Final = FormatOption[str | None](
    "location",
    None,
    str,
    "Where the metadata is. It follows from the other options, and cannot be another place.",
    default_text="(the SQLite file, or the database)",
    is_stored=True,
)
OPTIONS: Final = (LOCATION, URL_OPTION, PASSWORD, TABLE)
