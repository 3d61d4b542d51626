"""Tests of the names of locales."""

import pytest

from server.documents.locale_names import is_language, locale_name
from tests.documents.locale_names import TABLE, table


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("fr", "French (fr)"),
        ("de-AT", "German (Austria) (de-AT)"),
        ("de_at", "German (Austria) (de_at)"),
        ("zh-TW", "Chinese (Traditional, Taiwan) (zh-TW)"),
        ("zh-Hans-CN", "Chinese (Simplified, China) (zh-Hans-CN)"),
        ("es-419", "Spanish (Latin America) (es-419)"),
        ("ca-ES-valencia", "Catalan (Spain, Valencian) (ca-ES-valencia)"),
        ("tlh", "tlh"),
        ("de-XX", "de-XX"),
    ],
)
def test_a_locale_has_the_name_that_cldr_gives_it(code: str, name: str) -> None:
    assert locale_name(code) == name


@pytest.mark.parametrize(
    ("code", "known"), [("fr", True), ("FR-ca", True), ("skr", True), ("tlh", False), ("und", False)]
)
def test_what_is_a_language(code: str, known: bool) -> None:
    assert is_language(code) == known


def test_the_table_is_what_babel_knows() -> None:
    assert TABLE.read_text("utf-8") == table()
