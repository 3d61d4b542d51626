"""Command `python -m tests.documents.locale_names`: write server/documents/locale_names.tsv from Babel's
data.
"""

from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.localedata import locale_identifiers

from server.documents import locale_names

TABLE = Path(locale_names.__file__).with_suffix(".tsv")


def table() -> str:
    """Return a line for each locale in CLDR, with its code and its English name.

    Codes without a script, such as `zh_TW`, are included, too, if only one script is possible.
    """
    codes = set(locale_identifiers())
    parts = [code.split("_") for code in codes]
    codes |= {f"{part[0]}_{part[2]}" for part in parts if len(part) == 3 and len(part[1]) == len("Hant")}
    names = {code.replace("_", "-").lower(): _name(code) for code in codes}
    return "".join(f"{code}\t{name}\n" for code, name in sorted(names.items()) if name is not None)


def _name(code: str) -> str | None:
    """Return the locale's English name, an empty string if it has none, or None if the locale
    does not exist.
    """
    try:
        return Locale.parse(code).get_display_name("en") or ""
    except UnknownLocaleError:
        return None


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
