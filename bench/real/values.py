"""Comparison of the API's values of all documents with those of the independent reader."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.real.answers import normalise
from bench.real.client import Client
from bench.real.differences import Differences, shorten
from bench.real.expected import Unreadable, expected, is_same, moment, served_keys
from bench.real.layout import ContentType, Document
from tests.git import TIME

Key = tuple[str, str, str | None]  # (content type, documentId, locale)
COMMITTED = moment(TIME)


@dataclass(frozen=True, slots=True)
class Served:
    """A document, and the values that the API returns for it."""

    document: Document
    values: Mapping[str, Any]


@dataclass(slots=True)
class Comparison:
    """The documents that the server returns for a tree, and the number of compared values."""

    served: list[Served]
    compared: int = 0


def key_of(document: Document) -> Key:
    return document.type.singular, document.document_id, document.locale


def compare(
    client: Client,
    types: Iterable[ContentType],
    locales: list[str],
    documents: Iterable[Document],
    differences: Differences,
) -> Comparison:
    """Compare each value in the API with the value in the file."""
    by_key: dict[tuple[Key, bool], Document] = {}
    for document in documents:
        key = key_of(document), document.is_draft
        if key in by_key:
            differences.add("values: two files for one document", _pair(by_key[key], document))
        by_key.setdefault(key, document)
    known = {(document.type.uid, document.document_id) for document in by_key.values()}
    comparison = Comparison([])
    for content_type in types:
        for is_draft in (False, True) if content_type.has_drafts else (False,):
            status = "draft" if is_draft else "published"
            for values in client.read_all(content_type, locales, status):
                key = _key(content_type, values, by_key.keys(), is_draft)
                found = by_key.pop(key, None)
                if found is not None:
                    comparison.served.append(Served(found, values))
                    comparison.compared += _compare(found, values, known, differences)
                elif not is_draft:  # A list with status=draft also contains published documents.
                    differences.add("values: a document that no file is", f"{content_type.path}/{key[0][1]}")
    for document in by_key.values():
        differences.add("values: a file that is not served", document.reading.path)
    return comparison


def _key(
    content_type: ContentType, values: Mapping[str, Any], keys: Iterable[tuple[Key, bool]], is_draft: bool
) -> tuple[Key, bool]:
    locale = values.get("locale") if content_type.is_localized else None
    if content_type.is_single:  # No file contains the documentId of a single type.
        mine = (key for key in keys if key[0][0] == content_type.singular)
        return next(
            (key for key in mine if key[0][2] == locale and key[1] == is_draft), (("", "", None), False)
        )
    return (content_type.singular, values["documentId"], locale), is_draft


def _pair(one: Document, other: Document) -> str:
    return f"{one.reading.path} and {other.reading.path}"


def _compare(
    document: Document, values: Mapping[str, Any], known: set[tuple[str, str]], differences: Differences
) -> int:
    """Compare the values of one document, and return their number."""
    path = document.reading.path
    if document.reading.error:
        differences.add("values: the other reader can't read the file", f"{path}: {document.reading.error}")
        return 0
    compared = 0
    for name, attribute in document.type.attributes.items():
        if attribute.get("private") or attribute.get("mappedBy") or attribute["type"] == "password":
            continue
        compared += 1
        given = normalise(attribute, values.get(name), document.type.components)
        try:
            wanted = expected(document, name, attribute)
        except Unreadable as error:
            differences.add(
                f"values: {attribute['type']} can't hold what the file has", f"{path}: {name}: {error}"
            )
            continue
        if attribute["type"] == "relation":
            wanted = [one for one in wanted or [] if (attribute["target"], one) in known]
        if not is_same(wanted, given):
            cause = f"values: {attribute['type']}, {describe(wanted, given)}"
            differences.add(cause, f"{path}: {name}: file {shorten(wanted)}, API {shorten(given)}")
    if "otherKeys" not in document.type.options:
        for key in sorted(served_keys(document) - set(document.type.attributes)):
            differences.add("values: a key that is no attribute", f"{path}: {key}")
    return compared + _compare_timestamps(document, values, differences)


def _compare_timestamps(document: Document, values: Mapping[str, Any], differences: Differences) -> int:
    said = document.reading.text
    created = moment(str(said["createdAt"])) if said.get("createdAt") else COMMITTED
    updated = moment(str(said["updatedAt"])) if said.get("updatedAt") else COMMITTED
    published = None if document.is_draft else updated if document.type.has_drafts else created
    if said.get("publishedAt") and not document.is_draft:
        published = moment(str(said["publishedAt"]))
    for name, wanted in (("createdAt", created), ("updatedAt", updated), ("publishedAt", published)):
        if values[name] != wanted:
            example = f"{document.reading.path}: file {wanted}, API {values[name]}"
            differences.add(f"values: {name}, another value", example)
    return 3


def describe(expected: Any, actual: Any) -> str:
    """Describe how the API's value differs from the file's."""
    if expected is None or expected == []:
        return "a value that the file does not have"
    if actual is None or actual == []:
        return "no value"
    if isinstance(expected, str) and re.sub(r"[ \t]+(?=[ \n])", "", expected) == actual:
        return "without blanks at the end of a line"
    return "another value"
