"""The code names the steps of the model where it takes them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.model.two_steps import Step

CORE = Path(__file__).resolve().parents[2] / "hudi_core"
PLACES = (*sorted((CORE / "txn").rglob("*.py")), CORE / "actions/rollback.py")


def test_the_code_names_every_step_of_the_model_and_no_other() -> None:
    named = {
        word
        for path in PLACES
        for word in re.findall(r"# step ([a-z-]+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named == {step.word for step in Step if step not in (Step.ENDED, Step.DEAD)}
