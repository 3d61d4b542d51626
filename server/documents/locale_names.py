"""A locale as clients see it: its code, and its name in English."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from server.config.model import Settings
from server.documents.values import identify


def name_of(code: str) -> str:
    """`fr` → `French (fr)`; the code itself where nobody knows the language."""
    name = _names().get(code.replace("_", "-").lower())
    return f"{name} ({code})" if name else code


def is_language(code: str) -> bool:
    """Whether a code, without its region, is a language that CLDR has texts in."""
    return code.replace("_", "-").partition("-")[0].lower() in _names()


def describe(code: str, settings: Settings, timestamps: tuple[str, str]) -> Mapping[str, Any]:
    """The object that stands for a locale, with the times at which the settings were made and changed."""
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
    """The English name of each locale of CLDR, "" where it has none, by code in lower case.

    tests/documents/locale_names.py makes the file with Babel, which has 33 MB, since it knows all languages.
    """
    lines = Path(__file__).with_name("locale_names.tsv").read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in lines)
