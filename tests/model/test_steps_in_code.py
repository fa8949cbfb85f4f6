"""The code names the steps and the protective steps of the models where it takes them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tests.model import archival, beside, logs
from tests.model.two_steps import Step

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "hudi_core"
PLACES = (*sorted((CORE / "txn").rglob("*.py")), CORE / "actions/rollback.py")


def marked(kind: str, path: Path) -> list[str]:
    """The words behind a mark, in the order of a file's lines."""
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"# {kind} ([a-z-]+)$", text, re.MULTILINE)


def test_the_code_names_every_step_of_the_model_and_no_other() -> None:
    named = {word for path in PLACES for word in marked("step", path)}
    assert named == {step.word for step in Step if step not in (Step.ENDED, Step.DEAD)}


@pytest.mark.parametrize("place", ["actions/rollback.py", "txn/recovery/restore.py"])
def test_rollback_and_restore_take_their_steps_in_the_order_of_the_model(place: str) -> None:
    assert tuple(marked("undo", CORE / place)) == beside.UNDO_STEPS


def test_archiving_takes_its_steps_in_the_order_of_the_model() -> None:
    plan, history, service = (
        marked("archive", CORE / place)
        for place in ("actions/archive.py", "actions/history.py", "services/archive.py")
    )
    assert (*plan[:1], *history, *plan[1:], *service) == archival.ORDER


def test_the_code_names_every_protective_step_of_the_models_and_no_other() -> None:
    """Each of them is left out by a test that must find what goes wrong then."""
    files = (path for part in ("hudi_core", "*_format") for path in ROOT.glob(f"{part}/**/*.py"))
    named = {word for path in files for word in marked("guard", path)}
    rules = {
        field.name.replace("_", "-")
        for one in (beside.Rules, archival.Rules, logs.Rules)
        for field in fields(one)
        if field.type == "bool"
    }
    assert named == rules
