"""Patterns of schemas match as they do in JavaScript."""

import pytest

from server.schema.patterns import fault, mismatch


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("^[a-z]+$", "abc", True),
        ("^[a-z]+$", "abc\n", False),
        (r"^\d{3}$", "123", True),
        (r"^\d{3}$", "١٢٣", False),
        (r"^[\d-]+$", "1-2", True),
        (r"^[\d-]+$", "١", False),
        (r"^\w+$", "é", False),
        (r"^[^\w]$", "é", True),
        (r"^\D\W$", "é!", True),
        (r"^\$[$.]$", "$.", True),
        (r"^[$.]$", "x", False),
        (r"^\\d$", r"\d", True),
        (r"^[\]a]+$", "]a", True),
        (r"^[\w-.]+@[.-\d]$", "a-b.c@7", True),
        (r"^[\w-.]+$", "a/b", False),
        ("^a.b$", "a\rb", False),
        ("^(?<y>a)$", "a", True),
    ],
)
def test_a_pattern_matches_as_in_javascript(pattern: str, text: str, is_match: bool) -> None:
    assert not fault(pattern)
    assert (mismatch(pattern, text) == "") is is_match
