"""Conversion of the database rows in an export archive."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.schema.model import UPLOAD
from server.tools.importer.locales import read_roles
from server.tools.importer.readers.links import LinkTable, RowKey
from server.tools.importer.schemas import (
    NOT_IMPORTED,
    UNKNOWN_TYPE_MESSAGE,
    bifolio_uids,
    clean_schemas,
    note_user_attributes,
)
from server.tools.importer.source import (
    ImportNotes,
    SchemaJson,
    Source,
    SourceUpload,
    SourceVersion,
    is_draft_publish,
    read_version,
)
from server.tools.importer.uploads import file_name, read_upload

ArchiveRow = tuple[int, dict[str, Any]]  # (row number, data)


@dataclass(slots=True)
class ArchiveRows:
    """The parsed contents of an export archive."""

    schemas: list[dict[str, Any]] = field(default_factory=list)
    entities: dict[str, list[ArchiveRow]] = field(default_factory=lambda: defaultdict(list))
    links: list[dict[str, Any]] = field(default_factory=list)
    configuration: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    # size and SHA-256 hash of each media file, by name
    files: dict[str, tuple[int, str]] = field(default_factory=dict)


def make_source(title: str, contents: ArchiveRows, notes: ImportNotes) -> Source:
    """Convert the contents of an archive to a `Source`.

    Raises KeyError, TypeError, AttributeError or ValueError if the contents are damaged.
    """
    uids = bifolio_uids(contents.schemas)
    schemas = clean_schemas(contents.schemas, uids)
    uploads, paths = _uploads(contents, notes)
    ids = {
        (uids.get(uid, uid), row): data["documentId"]
        for uid, rows in contents.entities.items()
        for row, data in rows
        if "documentId" in data
    }
    links = LinkTable(uids, ids, paths, notes)
    for link in contents.links:
        links.add(link)
    versions: list[SourceVersion] = []
    created: dict[RowKey, str] = {}
    for uid, rows in contents.entities.items():
        if uids.get(uid) in schemas:
            made = (_version(schemas, uids[uid], row, data, links) for row, data in rows)
            versions += [version for version in made if version]
            created |= {(uids[uid], row): data["createdAt"] for row, data in rows}
        elif uid not in _SEPARATE_TYPES:
            notes.add(uid, NOT_IMPORTED.get(uid, UNKNOWN_TYPE_MESSAGE), len(rows))
    links.note_lost_orders(created)
    note_user_attributes(contents.schemas, uids, notes)
    default = contents.configuration.get("plugin_i18n_default_locale") or "en"
    locales = [data["code"] for _, data in contents.entities.get("plugin::i18n.locale", ())]
    used = dict.fromkeys([default, *locales, *(v.locale for v in versions if v.locale)])
    roles = read_roles(contents.entities, links, uids)
    return Source(title, schemas, tuple(used), default, versions, uploads, notes, roles)


_SEPARATE_TYPES = (UPLOAD, "plugin::i18n.locale")


def _version(
    schemas: Mapping[str, SchemaJson], uid: str, row: int, data: dict[str, Any], links: LinkTable
) -> SourceVersion | None:
    def resolve(owner: str, name: str, attribute: SchemaJson, inner: Mapping[str, Any]) -> Any:
        return links.targets_of(owner, row if inner is data else inner["id"], name, attribute)

    draft = is_draft_publish(schemas[uid]) and data.get("publishedAt") is None
    return read_version(schemas, uid, data, draft, resolve, links.notes)


def _uploads(contents: ArchiveRows, notes: ImportNotes) -> tuple[list[SourceUpload], dict[int, str]]:
    uploads, paths = [], {}
    for row, data in contents.entities.get(UPLOAD, ()):
        origin = f"assets/uploads/{file_name(data)}"
        if origin not in contents.files:
            notes.add(UPLOAD, f"{data['name']}: the archive does not contain this file")
            continue
        size, digest = contents.files[origin]
        upload = read_upload(data, origin, notes, size=size, digest=digest)
        if upload:
            uploads.append(upload)
            paths[row] = upload.path
    return uploads, paths
