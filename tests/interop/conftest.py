"""Lets the tests here import what they share, also when pytest is not started as a module."""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = str(Path(__file__).resolve().parents[2])
if REPOSITORY not in sys.path:
    sys.path.append(REPOSITORY)
