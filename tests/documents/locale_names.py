"""`python -m tests.documents.locale_names`: write server/documents/locale_names.tsv from Babel."""

from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.localedata import locale_identifiers

from server.documents import locale_names

TABLE = Path(locale_names.__file__).with_suffix(".tsv")


def table() -> str:
    """A line for each locale of CLDR: its code, and its name in English.

    A code without a script, as `zh_TW`, is there too where everybody means the same script by it.
    """
    codes = set(locale_identifiers())
    parts = [code.split("_") for code in codes]
    codes |= {f"{part[0]}_{part[2]}" for part in parts if len(part) == 3 and len(part[1]) == len("Hant")}
    names = {code.replace("_", "-").lower(): _name(code) for code in codes}
    return "".join(f"{code}\t{name}\n" for code, name in sorted(names.items()) if name is not None)


def _name(code: str) -> str | None:
    """The name of a locale, "" where it has none in English, None where it is no locale."""
    try:
        return Locale.parse(code).get_display_name("en") or ""
    except UnknownLocaleError:
        return None


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
