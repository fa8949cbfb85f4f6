"""Install PostgreSQL from the packages of the distribution, where there is none."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.postgres.server import binaries


def main() -> None:
    """Install it, as root of a Debian; elsewhere say what is missing."""
    if binaries() is not None:
        return
    if os.geteuid() != 0:
        sys.exit("PostgreSQL's `initdb` is missing: install the package postgresql")
    for arguments in (
        ("update", "-qq"),
        ("install", "-y", "--no-install-recommends", "postgresql"),
    ):
        subprocess.run(["apt-get", *arguments], check=True)
    if binaries() is None:
        sys.exit("the package postgresql brought no `initdb`")


if __name__ == "__main__":
    main()
