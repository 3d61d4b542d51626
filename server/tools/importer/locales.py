"""The settings that site.yaml needs for the documents of a source: its locales."""

from pathlib import Path

from server.config.model import FILE
from server.config.reader import read_settings
from server.errors import SetupError
from server.formats.yaml.reader import read_yaml
from server.paths import CONTENT
from server.storage.document_text import changed_text, new_text
from server.tools.importer.source import Source, is_localized


def settings_text(root: Path, source: Source) -> str | None:
    """The new text of site.yaml; None if it can stay as it is. Raises SetupError.

    A site without site.yaml gets the locales of the source, and may populate paged lists, as the
    source did. A site with one gets the locales that it lacks.
    """
    settings = read_settings(root)
    localized = any(is_localized(schema) for schema in source.schemas.values())
    locales = {"default": source.default_locale, "available": list(source.locales)}
    if not (root / FILE).exists():
        name = {"name": root.resolve().name}
        said = {"locales": locales} if localized else {}
        return new_text(FILE, None, {**name, **said, "api": {"populate_with_pagination": "allow"}})
    if not localized:
        return None
    text = (root / FILE).read_text(encoding="utf-8")
    written = (read_yaml(text) or {}).get("locales")
    if settings.default_locale != source.default_locale and (written or _has_content(root)):
        raise SetupError(
            FILE,
            None,
            f"the default locale is {settings.default_locale}, that of the source {source.default_locale}",
            "set locales.default, or import into a folder of its own",
        )
    missing = [code for code in source.locales if code not in settings.locales]
    if not missing and settings.default_locale == source.default_locale:
        return None
    known = settings.locales if written or settings.default_locale == source.default_locale else ()
    available = list(dict.fromkeys([*known, *source.locales]))
    return changed_text(FILE, text, None, {"locales": {**locales, "available": available}})


def _has_content(root: Path) -> bool:
    return any(path.is_file() for path in (root / CONTENT).rglob("*"))
