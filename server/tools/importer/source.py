"""The content to import, in the same form for an export archive and for a running installation: schemas,
document versions and uploads.
"""

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
# reports progress: the name of the step, the number of items done, the total
Say = Callable[[str, int, int], None]
Roles = Mapping[str, Mapping[str, Sequence[str]]]  # role → subject → actions
Shape = Mapping[str, Any]  # one schema, in the same form as in schema.json
# returns an attribute's targets; the arguments are the uid of the content type or component, the attribute's
# name, the attribute's definition and the data of the row
ResolveRelation = Callable[[str, str, Shape, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """One row in the source, which is a version of a document in one locale. The locale is "" if the content
    type has no locales.

    In `tree`, relations are represented by documentIds, and media by paths relative to uploads/.
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
    """A media file. `path` is relative to uploads/. `origin` is the place from which the file's content can
    be fetched.
    """

    path: str
    document_id: str
    described: Mapping[str, Tree]
    created: str
    updated: str
    published: str | None
    origin: str
    size: int | None = None
    digest: str | None = None


@dataclass(slots=True)
class ImportNotes:
    """Notes in the report that say which content is missing or was changed, grouped by subject. Identical
    notes are stored once, with their number.
    """

    found: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, subject: str, sentence: str, count: int = 1) -> None:
        """Add a note about a subject. `count` is the number of cases to which the note applies."""
        sentences = self.found.setdefault(subject, {})
        sentences[sentence] = sentences.get(sentence, 0) + count

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for subject, sentences in self.found.items():
            for sentence, count in sentences.items():
                yield subject, sentence, count


@dataclass(frozen=True, slots=True)
class Source:
    """The content to import: the schemas by uid, the document versions in order, and the media files."""

    title: str
    schemas: Mapping[str, Shape]
    locales: tuple[str, ...]
    default_locale: str
    versions: Sequence[SourceVersion]
    uploads: Sequence[SourceUpload]
    notes: ImportNotes
    roles: Roles = field(default_factory=dict)
    project: ProjectSettings = NO_SETTINGS


class SourceReader(Protocol):
    """Protocol for readers of a source. `read` returns everything except the contents of media files, and
    `fetch` copies the media files that are needed.
    """

    def read(self) -> Source:
        """Return the content to import, without the contents of media files. Raises SetupError."""

    def fetch(self, uploads: Sequence[SourceUpload], folder: Path) -> Iterator[tuple[SourceUpload, Path]]:
        """Copy the given media files to a folder. Raises SetupError."""


def tree_of(
    schemas: Mapping[str, Shape], uid: str, data: Mapping[str, Any], resolve: ResolveRelation
) -> Json:
    """Convert a row or component to the form in which a file contains it. The function `resolve` returns the
    targets of a relation or media attribute.

    Attributes that are missing in the data are omitted. For example, data from the API contains no passwords.
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
                {"__component": item["__component"], **tree_of(schemas, item["__component"], item, resolve)}
                for item in _mappings(data[name] or [])
                if item.get("__component") in schemas
            ]
        else:
            tree[name] = data[name]
    return tree


def _components(schemas: Mapping[str, Shape], uid: str, value: Any, resolve: ResolveRelation) -> Any:
    if uid not in schemas or value is None:
        return None
    if isinstance(value, list):
        return [tree_of(schemas, uid, item, resolve) for item in _mappings(value)]
    return tree_of(schemas, uid, _mappings([value])[0], resolve)


def _mappings(value: Any) -> list[Json]:
    """Return the components in a value. Raises ValueError if the value is neither a component nor a list of
    components.
    """
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("a component that is not an object")
    return value


def read_version(
    schemas: Mapping[str, Shape],
    uid: str,
    data: Mapping[str, Any],
    draft: bool,
    resolve: ResolveRelation,
    notes: ImportNotes,
) -> SourceVersion | None:
    """Convert a row to a version.

    If the row's id, its locale or one of its timestamps is invalid, add a note to the report and return None.
    """
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
    tree = tree_of(schemas, uid, data, resolve)
    locale = locale if is_localized(schemas[uid]) else ""
    return SourceVersion(uid, document_id, locale, draft, tree, at, updated or at, published)


DOCUMENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_EPOCH = "1970-01-01T00:00:00.000Z"


def is_derived(attribute: Shape) -> bool:
    """Return whether a relation is stored on the other side.

    A relation to users is never stored on the users' side, because users have no files.
    """
    return ("mappedBy" in attribute or "morphBy" in attribute) and attribute.get("target") != USER


def one_or_many(attribute: Shape, targets: list[Any]) -> Any:
    """Return the targets of a relation or media attribute in the form in which a file contains them."""
    many = attribute.get("multiple") or attribute.get("relation") in _TO_MANY
    return targets if many else (targets[-1] if targets else None)


_TO_MANY = ("oneToMany", "manyToMany", "morphToMany")


def is_draft_publish(schema: Shape) -> bool:
    """Return whether a content type has drafts."""
    return bool((schema.get("options") or {}).get("draftAndPublish"))


def is_localized(schema: Shape) -> bool:
    """Return whether a content type has locales."""
    plugins = schema.get("pluginOptions") or {}
    return bool((plugins.get("i18n") or {}).get("localized"))
