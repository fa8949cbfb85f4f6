"""What a table holds reaches the terminal as text, and nothing else."""

from __future__ import annotations

import json

import pytest

from hudi_core.cli.terminal import visible, write_error, write_facts, write_grid, write_json

HOSTILE = {
    "clear the screen": "\x1b[2J",
    "rename the window": "\x1b]0;owned\x07",
    "one-byte control sequence": "\x9b31m",
    "overwrite the line": "paid\runpaid",
    "add a line": "a\nerror: b",
    "turn the direction round": "gpj\u202efdp.exe",
    "invisible": "ro\u200bme",
    "line separator": "a\u2028b",
    "lone surrogate": "\ud800",
    "delete": "\x7f",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_characters_are_shown_as_escapes(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_grid(text, ["name"], [[text]])
    write_facts([(text, text)])
    write_error(text)

    captured = capsys.readouterr()
    for written in (captured.out, captured.err):
        assert visible(text) in written
        assert all(char.isprintable() for char in written.replace("\n", ""))
    assert "\\" in visible(text)
    assert captured.err.count("\n") == 1


def test_ordinary_text_of_any_script_stays() -> None:
    for text in ("Łódź", "東京", "São Paulo", "наш", "a\\b", "100 €"):
        assert visible(text) == text


def test_markup_of_rich_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold red]x[/] [link=http://a.b]y[/link] :smile: [/nothing]"

    write_grid(text, [text], [[text]])
    write_facts([(text, text)])
    write_error(text)

    captured = capsys.readouterr()
    assert captured.out.count(text) == 5
    assert captured.err == f"error: {text}\n"


@pytest.mark.parametrize(("columns", "width"), [(None, 120), ("70", 70), ("x", 120), ("0", 120)])
def test_a_pipe_gets_whole_values_in_lines_of_some_width(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str | None,
    width: int,
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    time, long = "20260131120000000", "".join(f"{n:03}" for n in range(200))

    write_grid("", ["a", "b"], [[time, long]])

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    words = "".join(lines).replace("─", "").split()
    assert words[:3] == ["a", "b", time]
    assert "".join(words[3:]) == long


def test_columns_of_long_values_give_way_before_short_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name, path = "hoodie.table.version", "p" * 55

    write_grid("", ["property", "of", "at"], [[name, path, path[:50]]])

    shown = capsys.readouterr().out
    assert name in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_numbers_are_aligned_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    write_grid("", ["count", "name"], [["1", "a"], ["1,000", "bb"]])

    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert any(line.endswith("    1   a") for line in lines)
    assert any(line.endswith("1,000   bb") for line in lines)


def test_json_is_ascii_and_exact(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"a": list(HOSTILE.values()), "b": None, "c": 2**60}

    write_json(document)

    written = capsys.readouterr().out
    assert written.isascii()
    assert all(char.isprintable() for char in written.replace("\n", ""))
    assert json.loads(written) == document
