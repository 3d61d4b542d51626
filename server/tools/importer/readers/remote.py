"""Reader of a running Strapi installation."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from server.errors import SetupError
from server.schema.model import UPLOAD
from server.tools.importer.readers.download import Client
from server.tools.importer.schemas import NOT_IMPORTED, bifolio_uids, clean_schemas, note_user_attributes
from server.tools.importer.source import (
    ImportNotes,
    Json,
    SchemaJson,
    Source,
    SourceUpload,
    SourceVersion,
    is_derived,
    is_draft_publish,
    is_localized,
    read_version,
    to_stored_targets,
)
from server.tools.importer.uploads import file_name, read_upload

# --- populate -------------------------------------------------------------------------------------

MAX_DEPTH = 8  # maximum depth of nested components
MAX_QUERY_CHARS = 12_000  # Servers reject longer URLs.


def populate_queries(schemas: Mapping[str, SchemaJson], schema: SchemaJson, base: str) -> list[str]:
    """Return `populate` parameters that include all relations, media and components of a content type.

    They are split into several queries, so that no URL is too long. Raises SetupError if an attribute is
    nested too deeply.
    """
    queries, length = [""], 0
    for name, attribute in schema["attributes"].items():
        text = "&".join(_populate(schemas, f"populate[{name}]", attribute, 0))
        if len(text) > MAX_QUERY_CHARS:
            singular = schema["info"]["singularName"]
            what = f'"{name}" in {singular} is nested too deeply to be fetched through the API'
            raise SetupError(base, None, what, "run `strapi export`, and import the archive")
        if length + len(text) > MAX_QUERY_CHARS:
            queries.append("")
            length = 0
        queries[-1] = join_query(queries[-1], text)
        length += len(text)
    return queries


def _populate(schemas: Mapping[str, SchemaJson], at: str, attribute: SchemaJson, depth: int) -> Iterator[str]:
    kind = attribute["type"]
    if depth > MAX_DEPTH or (kind == "relation" and is_derived(attribute)):
        return
    if kind == "relation":
        morph = str(attribute.get("relation")).startswith("morph")
        yield f"{at}=true" if morph else f"{at}[fields][0]=documentId"
    elif kind == "media":
        yield f"{at}[fields][0]=hash&{at}[fields][1]=ext"
    elif kind == "component":
        yield from _populate_inner(schemas, at, attribute["component"], depth)
    elif kind == "dynamiczone":
        for uid in attribute["components"]:
            yield from _populate_inner(schemas, f"{at}[on][{uid}]", uid, depth)


def _populate_inner(schemas: Mapping[str, SchemaJson], at: str, uid: str, depth: int) -> Iterator[str]:
    attributes = schemas[uid]["attributes"] if uid in schemas else {}
    inner = [
        part
        for name, attribute in attributes.items()
        for part in _populate(schemas, f"{at}[populate][{name}]", attribute, depth + 1)
    ]
    yield from inner or [f"{at}=true"]


def join_query(*parts: str) -> str:
    return "&".join(part for part in parts if part)


# --- remote ---------------------------------------------------------------------------------------

PAGE_ENTRIES = 100
_BUILDER = "content-type-builder"
_UPLOADS = "upload/files"
# options that are added, with the value false, to relations and media attributes
_BUILDER_OPTIONS = ("required", "private")


class Remote:
    """Reader of a running installation."""

    def __init__(self, url: str, token: str) -> None:
        address = url.rstrip("/")
        self.base = address.removesuffix("/api")
        self._client = Client(f"{self.base}/api/", token)

    def read(self) -> Source:
        """Read everything except the contents of media files.

        Raises SetupError if a request fails or returns invalid data.
        """
        try:
            return self._read()
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"sent a response that is not valid for Strapi 5: {type(error).__name__} {error}"
            raise SetupError(self.base, None, what, "run `strapi export`, and import the archive") from error

    def _read(self) -> Source:
        notes = ImportNotes()
        raw = self._schemas()
        uids = bifolio_uids(raw)
        schemas = clean_schemas(raw, uids)
        default, locales = self._locales()
        versions = [
            version
            for uid in schemas
            if "::" in uid
            for version in self._versions(schemas, uid, locales, notes)
        ]
        uploads = [upload for data in self._files() if (upload := self._upload(data, notes))]
        for uid in NOT_IMPORTED:
            if uid in uids:
                notes.add(uid, NOT_IMPORTED[uid])
        note_user_attributes(raw, uids, notes)
        for uid, schema in schemas.items():
            for name, attribute in schema["attributes"].items():
                if attribute.get("private") or attribute["type"] == "password":
                    notes.add(
                        uid,
                        f'"{name}" is private, so the API does not return it; an archive from `strapi '
                        "export` contains it",
                    )
        used = dict.fromkeys([default, *locales])
        return Source(self.base, schemas, tuple(used), default, versions, uploads, notes)

    def fetch(self, uploads: Sequence[SourceUpload], folder: Path) -> Iterator[tuple[SourceUpload, Path]]:
        """Download the media files that are not in the folder yet. Yield all files with their paths."""
        for upload in uploads:
            key = f"{upload.origin} {upload.updated} {upload.size}"
            target = folder / hashlib.sha256(key.encode()).hexdigest()
            if not target.exists():
                self._client.download(upload.origin, target, send_token=self._is_own(upload.origin))
            yield upload, target

    def _is_own(self, url: str) -> bool:
        return urlsplit(url)[:2] == urlsplit(self.base)[:2]

    # --- schemas -------------------------------------------------------------------------------

    def _schemas(self) -> list[Json]:
        found = []
        for entry in self._client.get_json(f"{_BUILDER}/content-types")["data"]:
            schema = entry["schema"]
            info = {key: schema[key] for key in ("singularName", "pluralName", "displayName", "description")}
            found.append(
                {
                    "uid": entry["uid"],
                    "kind": schema["kind"],
                    "collectionName": schema["collectionName"],
                    "info": {key: value for key, value in info.items() if value != ""},
                    "options": {"draftAndPublish": bool(schema.get("draftAndPublish"))},
                    "pluginOptions": schema.get("pluginOptions") or {},
                    "attributes": _convert_attributes(schema["attributes"]),
                }
            )
        for entry in self._client.get_json(f"{_BUILDER}/components")["data"]:
            schema = entry["schema"]
            info = {key: schema.get(key) for key in ("displayName", "icon", "description")}
            found.append(
                {
                    "uid": entry["uid"],
                    "collectionName": schema["collectionName"],
                    "info": {key: value for key, value in info.items() if value},
                    "options": {},
                    "attributes": _convert_attributes(schema["attributes"]),
                }
            )
        return found

    def _locales(self) -> tuple[str, list[str]]:
        # Without Strapi's i18n plugin, the only locale is `en`.
        found = self._client.get_json("i18n/locales", default=[])
        default = next((locale["code"] for locale in found if locale.get("isDefault")), "en")
        return default, [locale["code"] for locale in found] or ["en"]

    # --- documents -----------------------------------------------------------------------------

    def _versions(
        self, schemas: Mapping[str, SchemaJson], uid: str, locales: Sequence[str], notes: ImportNotes
    ) -> Iterator[SourceVersion]:
        schema = schemas[uid]
        for status in ("published", "draft") if is_draft_publish(schema) else ("",):
            for data in self._rows(schemas, schema, f"status={status}" if status else "", locales):
                version = read_version(schemas, uid, data, status == "draft", _targets, notes)
                if version:
                    yield version

    def _rows(
        self, schemas: Mapping[str, SchemaJson], schema: SchemaJson, status: str, locales: Sequence[str]
    ) -> Iterator[Json]:
        info, localized = schema["info"], is_localized(schema)
        queries = [join_query(status, populate) for populate in populate_queries(schemas, schema, self.base)]
        if schema["kind"] == "singleType":
            for locale in locales if localized else ("",):
                localized_queries = [
                    join_query(query, f"locale={locale}" if locale else "") for query in queries
                ]
                answers = [
                    self._client.get_json(f"{info['singularName']}?{q}", default=None)
                    for q in localized_queries
                ]
                if answers[0] is not None:
                    yield _merge_rows([answer["data"] for answer in answers])
            return
        everywhere = "locale=*" if localized else ""
        page, pages = 1, 1
        while page <= pages:
            where = f"sort=id&pagination[page]={page}&pagination[pageSize]={PAGE_ENTRIES}"
            answers = [
                self._client.get_json(f"{info['pluralName']}?{join_query(query, everywhere, where)}")
                for query in queries
            ]
            pages = answers[0]["meta"]["pagination"]["pageCount"]
            for rows in zip(*(answer["data"] for answer in answers), strict=True):
                yield _merge_rows(rows)
            page += 1

    # --- files ---------------------------------------------------------------------------------

    def _files(self) -> Iterator[Json]:
        # Strapi can return fewer files than requested, so continue after the last file.
        start = 0
        while found := self._client.get_json(f"{_UPLOADS}?sort=id&start={start}&limit={PAGE_ENTRIES}"):
            yield from found
            if len(found) < PAGE_ENTRIES:
                return
            start += len(found)

    def _upload(self, data: Json, notes: ImportNotes) -> SourceUpload | None:
        origin = urljoin(f"{self.base}/", quote(data["url"], safe="/:?&=%#"))
        if urlsplit(origin).scheme not in ("http", "https"):
            notes.add(UPLOAD, f"{data['name']}: {origin} can't be fetched")
            return None
        return read_upload(data, origin, notes, size=round(float(data.get("size") or 0) * 1000))


def _convert_attributes(attributes: Mapping[str, Json]) -> dict[str, Json]:
    found = {}
    for name, attribute in attributes.items():
        clean = {key: value for key, value in attribute.items() if key != "targetAttribute"}
        if clean["type"] in ("relation", "media"):
            clean = {
                key: value
                for key, value in clean.items()
                if key not in _BUILDER_OPTIONS or value is not False
            }
        found[name] = clean
    return found


def _targets(_: str, name: str, attribute: SchemaJson, data: Mapping[str, Any]) -> Any:
    value = data.get(name)
    found = value if isinstance(value, list) else [] if value is None else [value]
    named: list[Any]
    if attribute["type"] == "media":
        named = [file_name(file) for file in found]
    elif str(attribute.get("relation")).startswith("morph"):
        named = [{"__type": target["__type"], "documentId": target["documentId"]} for target in found]
    else:
        named = [target["documentId"] for target in found]
    return to_stored_targets(attribute, list({str(target): target for target in named}.values()))


def _merge_rows(rows: Sequence[Json]) -> Json:
    if len({row["documentId"] for row in rows}) > 1:
        raise ValueError("documents were changed during the import")
    return {key: value for row in rows for key, value in row.items()}
