"""Tests of the names of locales."""

import os
from pathlib import Path

import pytest

from server.documents.locale_names import is_language, locale_name
from tests.documents.locale_names import TABLE, table
from tests.sites import make, write


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


def test_the_timestamps_of_locales_do_not_show_when_the_settings_changed(tmp_path: Path) -> None:
    settings = "roles: {public: {locale: [find]}}\n"
    api = make(tmp_path, {"site.yaml": settings, "content-types/.keep": ""})
    before = api.get("/api/i18n/locales", "public").raw
    write(tmp_path, {"site.yaml": f"# note\n{settings}"})
    os.utime(tmp_path / "site.yaml", (1, 1))
    api.site.refresh()
    assert api.get("/api/i18n/locales", "public").raw == before
    api.accounts.close()
