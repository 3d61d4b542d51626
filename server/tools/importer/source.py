"""The content to import, in the form that all readers return."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from server.config.values import LOCALE
from server.documents.timestamps import read_timestamp
from server.formats.tree import Tree
from server.schema.model import USER
from server.tools.importer.project_config import NO_SETTINGS, ProjectSettings

Json = dict[str, Any]
# (step, done, total)
ReportProgress = Callable[[str, int, int], None]
Roles = Mapping[str, Mapping[str, Sequence[str]]]  # actions by subject, by role
SchemaJson = Mapping[str, Any]  # a schema in the form of schema.json
# (uid, attribute's name and definition, row) → targets
ResolveRelation = Callable[[str, str, SchemaJson, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A version of an imported document.

    In `tree`, relations contain documentIds, and media attributes contain paths below uploads/.
    """

    uid: str
    document_id: str
    locale: str
    draft: bool
    tree: Mapping[str, Tree]
    created: str
    updated: str
    published: str | None


@dataclass(frozen=True, slots=True)
class SourceUpload:
    """A media file to import.

    `path` is relative to uploads/. `origin` is the file's name in the archive, or its URL.
    """

    path: str
    document_id: str
    description: Mapping[str, Tree]
    created: str
    updated: str
    published: str | None
    origin: str
    size: int | None = None
    digest: str | None = None


@dataclass(slots=True)
class ImportNotes:
    """Notes about missing or changed content, with the number of occurrences of each note."""

    found: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, subject: str, sentence: str, count: int = 1) -> None:
        sentences = self.found.setdefault(subject, {})
        sentences[sentence] = sentences.get(sentence, 0) + count

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for subject, sentences in self.found.items():
            for sentence, count in sentences.items():
                yield subject, sentence, count


@dataclass(frozen=True, slots=True)
class Source:
    """All content, schemas and settings to import."""

    title: str
    schemas: Mapping[str, SchemaJson]
    locales: tuple[str, ...]
    default_locale: str
    versions: Sequence[SourceVersion]
    uploads: Sequence[SourceUpload]
    notes: ImportNotes
    roles: Roles = field(default_factory=dict)
    project: ProjectSettings = NO_SETTINGS


class SourceReader(Protocol):
    """Interface of the readers for export archives and for running installations."""

    def read(self) -> Source:
        """Return the content to import, except the contents of media files. Raises SetupError on failure."""

    def fetch(self, uploads: Sequence[SourceUpload], folder: Path) -> Iterator[tuple[SourceUpload, Path]]:
        """Copy media files to a folder. Yield each file with the path of its copy.

        Raises SetupError if a file can't be read.
        """


def to_file_values(
    schemas: Mapping[str, SchemaJson], uid: str, data: Mapping[str, Any], resolve: ResolveRelation
) -> Json:
    """Convert a row or component to the values that are stored in a document's file.

    `resolve` returns the targets of a relation or media attribute.
    """
    tree: Json = {}
    for name, attribute in schemas[uid]["attributes"].items():
        kind = attribute["type"]
        if kind in ("relation", "media"):
            if not is_derived(attribute):
                tree[name] = resolve(uid, name, attribute, data)
        elif name not in data:
            continue
        elif kind == "component":
            tree[name] = _components(schemas, attribute["component"], data[name], resolve)
        elif kind == "dynamiczone":
            tree[name] = [
                {
                    "__component": item["__component"],
                    **to_file_values(schemas, item["__component"], item, resolve),
                }
                for item in _require_components(data[name] or [])
                if item.get("__component") in schemas
            ]
        else:
            tree[name] = data[name]
    return tree


def _components(schemas: Mapping[str, SchemaJson], uid: str, value: Any, resolve: ResolveRelation) -> Any:
    if uid not in schemas or value is None:
        return None
    if isinstance(value, list):
        return [to_file_values(schemas, uid, item, resolve) for item in _require_components(value)]
    return to_file_values(schemas, uid, _require_components([value])[0], resolve)


def _require_components(value: Any) -> list[Json]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("a component that is not an object")
    return value


def read_version(
    schemas: Mapping[str, SchemaJson],
    uid: str,
    data: Mapping[str, Any],
    draft: bool,
    resolve: ResolveRelation,
    notes: ImportNotes,
) -> SourceVersion | None:
    """Convert a row to a document version. If the row is invalid, add a note and return None."""
    document_id, locale = data.get("documentId"), data.get("locale") or ""
    timestamps = [data.get(name) for name in ("createdAt", "updatedAt", "publishedAt")]
    if not isinstance(document_id, str) or not DOCUMENT_ID.fullmatch(document_id):
        notes.add(uid, f"a row has the documentId {str(document_id)[:40]!r}, which is not a valid id")
        return None
    if not isinstance(locale, str) or not (LOCALE.fullmatch(locale) or not locale):
        notes.add(uid, f"{document_id} has the locale {str(locale)[:40]!r}, which is not a locale code")
        return None
    try:
        created, updated, published = (
            read_timestamp(str(at)) if at is not None else None for at in timestamps
        )
    except ValueError:
        notes.add(uid, f"{document_id} has a timestamp that can't be read")
        return None
    at = created or updated or published or _EPOCH
    tree = to_file_values(schemas, uid, data, resolve)
    locale = locale if is_localized(schemas[uid]) else ""
    return SourceVersion(uid, document_id, locale, draft, tree, at, updated or at, published)


DOCUMENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_EPOCH = "1970-01-01T00:00:00.000Z"


def is_derived(attribute: SchemaJson) -> bool:
    # Users are not stored in files, so the other side always stores their relations.
    return ("mappedBy" in attribute or "morphBy" in attribute) and attribute.get("target") != USER


def to_stored_targets(attribute: SchemaJson, targets: list[Any]) -> Any:
    many = attribute.get("multiple") or attribute.get("relation") in _TO_MANY
    return targets if many else (targets[-1] if targets else None)


_TO_MANY = ("oneToMany", "manyToMany", "morphToMany")


def is_draft_publish(schema: SchemaJson) -> bool:
    return bool((schema.get("options") or {}).get("draftAndPublish"))


def is_localized(schema: SchemaJson) -> bool:
    plugins = schema.get("pluginOptions") or {}
    return bool((plugins.get("i18n") or {}).get("localized"))
