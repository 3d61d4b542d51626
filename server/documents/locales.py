"""A locale as clients see it: its code, and its name in English."""

from collections.abc import Mapping
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.localedata import exists

from server.config.model import Settings
from server.documents.values import identify


def name_of(code: str) -> str:
    """`fr` → `French (fr)`; the code itself where nobody knows the language."""
    try:
        name = Locale.parse(code.replace("-", "_")).get_display_name("en")
    except (UnknownLocaleError, ValueError):
        name = None
    return f"{name} ({code})" if name else code


def is_language(code: str) -> bool:
    """Whether a code, without its region, is a language that CLDR has texts in."""
    return exists(code.replace("-", "_").partition("_")[0].lower())


def describe(code: str, settings: Settings, timestamp: str) -> Mapping[str, Any]:
    """The object that stands for a locale; it has been there since `timestamp`."""
    return {
        "id": identify("locale", code),
        "documentId": f"locale-{code}",
        "name": name_of(code),
        "code": code,
        "createdAt": timestamp,
        "updatedAt": timestamp,
        "publishedAt": timestamp,
        "isDefault": code == settings.default_locale,
    }
