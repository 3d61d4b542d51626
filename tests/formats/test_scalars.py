"""Tests of the types of scalars without quotes, which follow YAML 1.2."""

from typing import Any

import pytest

from server.formats.tree import MAX_DIGITS, Plain, is_null, resolve_plain_values

# The core schema in section 10.3.2 of YAML 1.2.2.
CORE: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None, "nUll": "nUll",
    "true": True, "True": True, "TRUE": True, "tRue": "tRue", "false": False, "FALSE": False,
    "yes": "yes", "NO": "NO", "on": "on", "y": "y",
    "0": 0, "-0": 0, "+12": 12, "01234": 1234, "1_000": "1_000", "12:30": "12:30", "1:30:00": "1:30:00",
    "0o17": 15, "0x1F": 31, "0x1f": 31, "0o8": "0o8",
    "0O17": "0O17", "0X1F": "0X1F", "0x": "0x", "0x1_0": "0x1_0",
    "-0x1": "-0x1", "0b11": "0b11",
    "1.10": 1.1, ".5": 0.5, "-.5": -0.5, "1.": 1.0, "1e3": 1000.0, "1E-3": 0.001, "+1.5e+2": 150.0,
    ".": ".", "e5": "e5", "1e": "1e", "1.2.3": "1.2.3", "+": "+", "infinity": "infinity", "nan": "nan",
    "2024-01-02": "2024-01-02", "=": "=", "<<": "<<",
}  # fmt: skip


@pytest.mark.parametrize("text", CORE)
def test_scalars_without_quotes_are_typed_by_yaml_1_2(text: str) -> None:
    found = resolve_plain_values(Plain(text))
    assert (found, type(found)) == (CORE[text], type(CORE[text]))
    assert resolve_plain_values(text) == text  # with quotes, it is a string


@pytest.mark.parametrize(
    "text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN", "1e999", "-1e400", "9" * (MAX_DIGITS + 1)]
)
def test_numbers_that_json_does_not_have_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|too large|digits"):
        resolve_plain_values({"a": [Plain(text)]})


NULLS = [None, Plain("~"), Plain(""), Plain("null"), Plain("NULL")]


@pytest.mark.parametrize("value", [*NULLS, "", "~", "null", Plain("NO"), Plain("nUll"), 0, False, [], {}])
def test_null_is_what_was_written_as_null(value: Any) -> None:
    assert is_null(value) is any(value is null for null in NULLS)
