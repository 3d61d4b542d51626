"""Patterns in schemas: they match as they do in JavaScript."""

import json
import shutil
import subprocess

import pytest

from server.schema.patterns import convert_for_unicode_flag, fault, pattern_error


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
        (r"^\s+$", "\u00a0\ufeff\u2003", True),
        (r"^\s$", "\u001c", False),
        (r"^\s$", "\u0085", False),
        (r"^\S$", "\ufeff", False),
        (r"^\S$", "\u0085", True),
        (r"^[\s,]+$", ", \u3000", True),
        (r"^[^\s]+$", "a\u00a0b", False),
        (r"\bcafé\b", "un café ici", False),
        (r"\bcafe\b", "un cafe ici", True),
        (r"é\b", "é", False),
        (r"^\Ba\B$", "a", False),
        (r"^é\Bé$", "éé", True),
        (r"^[\b]$", "\b", True),
        (r"^[\D]+$", "١x", True),
        (r"^[\D]+$", "1", False),
        (r"^[\W]+$", "é!", True),
        (r"^[\W]+$", "a", False),
        (r"^[^\W]+$", "a_1", True),
        (r"^[\S]+$", "a b", False),
        (r"^[\Wé]+$", "é-", True),
        ("^.$", "🦊", False),
        ("^..$", "🦊", True),
        ("^[🦊]+$", "🦊", True),
        ("^🦊$", "🦊", True),
        ("^.{2}$", "é!", True),
        ("^[^a]$", "🦊", False),
        (r"^\ud83e\udd8a$", "🦊", True),
        ("^a{$", "a{", True),
        ("^a{,2}$", "a{,2}", True),
        ("^a{,2}$", "aa", False),
        ("^{a}$", "{a}", True),
        ("^[[a]$", "[", True),
        ("^[[:alpha:]]$", "a]", True),
        ("^[[:alpha:]]$", "b", False),
        ("^a[]$", "a", False),
        ("^a[^]b$", "a\nb", True),
        ("^[a[]$", "[", True),
        (r"^\A\Z$", "AZ", True),
        (r"^\h\R$", "hR", True),
        (r"^\cJ$", "\n", True),
        (r"^\x41\u0042$", "AB", True),
        (r"^\u$", "u", True),
        (r"^(?<a>x)\k<a>$", "xx", True),
        ("^x}+$", "x}}", True),
        ("^[*+?]+$", "*+?", True),
        (r"^\++$", "++", True),
        ("^(?:a|b)+?$", "ab", True),
        ("(?<=a)b(?!c)", "ab", True),
        ("(?<!a)b", "ab", False),
        (r"^[a\-z]$", "-", True),
        (r"^[\w-]+$", "a-b", True),
        (r"^[.\]]+$", ".]", True),
        (r"^\/$", "/", True),
        ("^[^]$", "🦊", False),
        (r"^\e$", "e", True),
        (r"^[\e]$", "e", True),
        ("^[(?]+$", "(?", True),
        (r"^\0$", "\u0000", True),
        (r"^[\s-a]$", "-", True),
    ],
)
def test_a_pattern_matches_as_in_javascript(pattern: str, text: str, is_match: bool) -> None:
    assert not fault(pattern)
    assert (pattern_error(pattern, text) == "") is is_match


@pytest.mark.parametrize("pattern", ["(?P<a>x)", "(?i)a", "(?>a)", "(?#x)", "a*+", "a{2}+"])
def test_a_pattern_that_javascript_does_not_have_is_named(pattern: str) -> None:
    assert fault(pattern).startswith("JavaScript has no ")


PATTERNS = (
    "^[a-z]+$", r"^\_\-\@[\w\-.]+$", r"^[\w-.]+$", r"^[\d-x]$", "^a{2,}{$", "a}", "]", "^[]$", "^[^]$", "[[]",
    r"^(?<y>a)\k<y>$", "^.{2}$", "^[^a]{2}$", r"^\p{Lu}\S$", r"^\W\D$", r"^[*+?(]+$", r"a\/b", r"^\bé?\B",
    "^(?!x)(?<=)a$", r"^\cJ\x41\u0042$", r"^\t[\b]$", "a|b", "^x*$", "🦊", r"[\]\\^-]",
)  # fmt: skip
OTHERS = ("(?=a)*b", r"^[a-\d]$", r"(a)\1", r"\u{2}", r"^\p{IsGreek}$", "(?i:a)", r"\q", r"\01", r"[\B]")
TEXTS = (
    "", "abc", "_-@a.b", "a-b", "7", "aa{", "a}", "]", "[", "\n", "aa", "bb", "🦊", "🦊🦊",
    "É", "ÉÉ", "é!", "*+?(",
    "a/b", "\nAB", "\t\b", "x", "xx", "\\", "^", "a",
)  # fmt: skip


def test_other_programs_accept_what_matches() -> None:
    """Test `convert_for_unicode_flag` with JavaScript's own regular expressions, if Node.js is installed."""
    made = {pattern: convert_for_unicode_flag(pattern) for pattern in PATTERNS}
    assert None not in made.values()
    assert [pattern for pattern in OTHERS if convert_for_unicode_flag(pattern) is not None] == []
    if not shutil.which("node"):
        pytest.skip("Node.js is not installed")
    script = (
        "const [patterns, texts] = JSON.parse(require('fs').readFileSync(0));"
        "console.log(JSON.stringify(patterns.map((p) => texts.map((t) => new RegExp(p, 'u').test(t)))))"
    )
    given = json.dumps([list(made.values()), TEXTS])
    done = subprocess.run(["node", "-e", script], input=given, capture_output=True, text=True, check=True)
    for pattern, found in zip(made, json.loads(done.stdout), strict=True):
        for text, is_match in zip(TEXTS, found, strict=True):
            may_differ = max(text, default="") > "\uffff"
            expected = not pattern_error(pattern, text)
            assert is_match == expected or (is_match and may_differ), (pattern, made[pattern], text)
