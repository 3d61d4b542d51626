"""Mapping of files to documents by the rules in docs/files.md, without Bifolio's code."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.real.reader import Reading

MARKDOWN = (".md", ".mdx", ".markdown")
ENDINGS = (*MARKDOWN, ".yaml", ".yml", ".json", ".toml")
Components = Mapping[str, Mapping[str, Mapping[str, Any]]]  # attributes by uid
NAME, LOCALE = "{name}", "{locale}"


@dataclass(frozen=True, slots=True)
class ContentType:
    """A content type, as its schema file describes it."""

    singular: str
    plural: str
    is_single: bool
    is_localized: bool
    has_drafts: bool
    options: Mapping[str, Any]
    attributes: Mapping[str, Mapping[str, Any]]
    # attributes of all content types and components of the site
    components: Components = field(default_factory=dict)

    @property
    def uid(self) -> str:
        return f"api::{self.singular}.{self.singular}"

    @property
    def path(self) -> str:
        return f"/api/{self.singular if self.is_single else self.plural}"

    @property
    def body(self) -> str | None:
        rich = (name for name, attribute in self.attributes.items() if attribute["type"] == "richtext")
        return self.options.get("body") or next(rich, None)

    @property
    def patterns(self) -> list[str]:
        files = self.options.get("files")
        if files is None:
            stem = f"content/{self.singular}" if self.is_single else f"content/{self.plural}/{NAME}"
            stems = [stem, f"{stem}.{LOCALE}"] if self.is_single and self.is_localized else [stem]
            return [stem + ending for stem in stems for ending in ENDINGS]
        return [files] if isinstance(files, str) else list(files)


@dataclass(frozen=True, slots=True)
class Document:
    """One file of a document, in one locale."""

    type: ContentType
    document_id: str
    locale: str | None  # None if the content type is not localized
    is_draft: bool
    name: str  # the value of `{name}` in the path pattern
    reading: Reading


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A path pattern of a content type, with its regular expression and precedence."""

    type: ContentType
    expression: re.Pattern[str]
    rank: tuple[bool, int]


def load_types(root: Path) -> list[ContentType]:
    """Load the content types of a site."""
    folder = root / "content-types" / "components"
    components = {
        f"{path.parent.name}.{path.stem}": json.loads(path.read_bytes())["attributes"]
        for path in sorted(folder.glob("*/*.json"))
    }
    schemas = (json.loads(path.read_bytes()) for path in sorted((root / "content-types").glob("*.json")))
    return [
        ContentType(
            schema["info"]["singularName"],
            schema["info"]["pluralName"],
            schema.get("kind") == "singleType",
            bool(schema.get("pluginOptions", {}).get("i18n", {}).get("localized")),
            bool(schema.get("options", {}).get("draftAndPublish")),
            schema.get("options", {}),
            schema["attributes"],
            components,
        )
        for schema in schemas
    ]


def claimed(types: Iterable[ContentType], locales: list[str], paths: Iterable[str]) -> dict[str, ContentType]:
    patterns = _compile(types, locales)
    found = {path: _match(patterns, path) for path in paths}
    return {path: match[0].type for path, match in found.items() if match is not None}


def documents(
    types: Iterable[ContentType], locales: list[str], readings: Iterable[Reading]
) -> list[Document]:
    patterns = _compile(types, locales)
    return [
        _document(match[0].type, match[1], locales, reading)
        for reading in readings
        if (match := _match(patterns, reading.path)) is not None
    ]


def _document(
    content_type: ContentType, match: re.Match[str], locales: list[str], reading: Reading
) -> Document:
    groups = match.groupdict()
    name, locale = groups.get("name", ""), groups.get("locale")
    is_draft = _says_draft(content_type, reading)
    if content_type.has_drafts and name.endswith(".draft"):
        name, is_draft = name.removesuffix(".draft"), True
    stem, _, ending = name.rpartition(".")
    if content_type.is_localized and locale is None:
        name, locale = (stem, ending) if stem and ending in locales else (name, locales[0])
    document_id = str(reading.text.get("documentId") or name).replace("/", "--")
    return Document(content_type, document_id, locale, is_draft, name, reading)


def _says_draft(content_type: ContentType, reading: Reading) -> bool:
    said: Mapping[str, Any] = content_type.options.get("draftWhen", {})
    return any(reading.typed.get(key) is value for key, value in said.items())


def _compile(types: Iterable[ContentType], locales: list[str]) -> list[_Pattern]:
    """Compile the patterns of all content types, in order of precedence."""
    codes = "|".join(map(re.escape, locales))
    patterns = []
    for content_type in types:
        for pattern in content_type.patterns:
            text = re.escape(pattern).replace(r"\{name\}", "(?P<name>.+)")
            text = text.replace(r"\{locale\}", f"(?P<locale>{codes})")
            text = text.replace(r"\{initial\}", "(?P<initial>[^/])")
            names_file = NAME not in pattern.rpartition("/")[2]
            patterns.append(_Pattern(content_type, re.compile(text), (not names_file, -len(pattern))))
    return sorted(patterns, key=lambda pattern: pattern.rank)


def _match(patterns: list[_Pattern], path: str) -> tuple[_Pattern, re.Match[str]] | None:
    for pattern in patterns:
        match = pattern.expression.fullmatch(path)
        if match is not None and _is_below_its_initial(match) and not _is_partial(match):
            return pattern, match
    return None


def _is_below_its_initial(match: re.Match[str]) -> bool:
    initial = match.groupdict().get("initial")
    return initial is None or initial == match["name"][0].lower()


def _is_partial(match: re.Match[str]) -> bool:
    if "name" not in match.groupdict():
        return False
    last = match["name"].rpartition("/")[2]
    is_file_name = "/" not in match.string[match.end("name") :]
    return is_file_name and last.startswith("_") and last.partition(".")[0] != "_index"
