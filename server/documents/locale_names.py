"""Locales as the API returns them: code and English name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from server.config.model import Settings
from server.documents.values import identify


def name_of(code: str) -> str:
    """Return the display name of a locale: `fr` → `French (fr)`, or the code if the language is unknown."""
    name = _names().get(code.replace("_", "-").lower())
    return f"{name} ({code})" if name else code


def is_language(code: str) -> bool:
    """Whether CLDR has the language of a code, without its region."""
    return code.replace("_", "-").partition("-")[0].lower() in _names()


def describe(code: str, settings: Settings, timestamps: tuple[str, str]) -> Mapping[str, Any]:
    """Return the JSON of a locale; `timestamps` are when the settings were created and changed."""
    created, updated = timestamps
    return {
        "id": identify("locale", code),
        "documentId": f"locale-{code}",
        "name": name_of(code),
        "code": code,
        "createdAt": created,
        "updatedAt": updated,
        "publishedAt": updated,
        "isDefault": code == settings.locales.default,
    }


# Saves 0.35 ms of 0.53 of the list of locales.
@cache
def _names() -> Mapping[str, str]:
    """Return the English name of each CLDR locale ("" for none) by code in lower case.

    tests/documents/locale_names.py writes the file with Babel, which is too large (33 MB) to depend on.
    """
    lines = Path(__file__).with_name("locale_names.tsv").read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in lines)
