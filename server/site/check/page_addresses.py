"""Lookup of documents by page address (the `urls` setting)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from posixpath import dirname, normpath
from typing import Any, NamedTuple
from urllib.parse import unquote

from server.config.model import Settings
from server.config.public_site import EVERY_LOCALE, KEEPS_SLASHES, split_field
from server.documents.addresses import (
    MAX_ADDRESS_CHARS,
    address_of,
    fill,
    origin_of,
    path_of,
    pattern_of,
    placeholders_in,
)
from server.documents.document import PUBLISHED, Document, column_of
from server.documents.ids import id_of_name
from server.documents.path_rules import Layout
from server.index.snapshot import Snapshot
from server.schema.model import Type
from server.site.aliases import normalize_path, parse_address
from server.site.check.address_patterns import AddressPattern, LiteralPart, Part, PlaceholderPart

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NO_DIGIT, _SLASH, _LINE_BREAK = re.compile(r"\D"), re.compile("/"), re.compile("\n")
# Front ends show a document with one of these names at the address of its folder.
INDEX_NAMES = ("/index", "/_index")
# If at least this many documents have addresses in a folder, such as /guides/, assume that the front end has
# no other pages there.
MIN_IN_FOLDER = 10
# Addresses with an extension, such as the URL of a feed, do not belong to documents.
_FILE_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{1,4}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TypeAddresses:
    """The pattern of a content type's page addresses in `locale`, which can be EVERY_LOCALE.

    `pattern` and `prefix` are percent-decoded. `key` is the placeholder that identifies a document, or "" if
    the pattern has no such placeholder. If `is_exclusive` is set, every matching address must belong to a
    document.
    """

    type: Type
    origin: str
    pattern: AddressPattern
    prefix: str
    key: str
    locale: str
    is_exclusive: bool


class AddressMatch(NamedTuple):
    """The result of matching an address against the pattern in `addresses`.

    `key_value` is the part of the address that matches the placeholder `addresses.key`.
    """

    addresses: TypeAddresses
    key_value: str
    locale: str


class PageAddresses:
    """Lookup of documents by page address."""

    def __init__(self, snapshot: Snapshot, settings: Settings, layout: Layout) -> None:
        self._snapshot, self._settings, self._layout = snapshot, settings, layout
        self._values: dict[tuple[str, str], Mapping[str, list[Document]]] = {}
        self._urls: dict[Document, str | None] = {}
        self._found: dict[tuple[str, str], Document | None] = {}

    @cached_property
    def pages(self) -> tuple[TypeAddresses, ...]:
        # Exclusive patterns come first.
        return tuple(sorted(self._find_pages(), key=lambda pages: not pages.is_exclusive))

    def _find_pages(self) -> Iterator[TypeAddresses]:
        locales = self._settings.locales
        for type_ in self._snapshot.schema.content_types:
            url = self._settings.urls.get(type_.singular)
            for locale in url.patterns if url else ():
                pattern = pattern_of(type_, locale or locales.default, self._settings)
                is_own = locale == EVERY_LOCALE or locale in locales.available
                if pattern is not None and is_own and "?" not in pattern:
                    yield _pages(type_, pattern, locale, locales.available)

    def url(self, document: Document) -> str | None:
        if document not in self._urls:
            pattern = pattern_of(document.type, document.locale, self._settings)
            self._urls[document] = address_of(document, pattern, self._layout) if pattern else None
        return self._urls[document]

    def address_after_rename(self, document: Document, new_path: str) -> str | None:
        """Return the address that a document will have after its file is renamed to `new_path`.

        Return None if the document will have no address.
        """
        before, after = self._layout.claim(document.path), self._layout.claim(new_path)
        pattern = pattern_of(document.type, document.locale, self._settings)
        if before is None or after is None or pattern is None:
            return None
        row, is_own = document.read_row(), before.document_id != document.document_id

        def value(name: str) -> Any:
            if name == "name":
                return after.name
            if name == "documentId" and not is_own:
                return after.document_id
            return row[document.type.position[name]]

        url = fill(pattern, value)
        return path_of(url) if url else None

    def address(self, document: Document) -> str | None:
        url = self.url(document)
        return path_of(url) if url else None

    def origin(self, document: Document) -> str:
        url = self.url(document)
        return origin_of(url) if url else ""

    def document_at(self, target: str, origin: str = "") -> Document | None:
        """Return the document at an address, or None if no document has this address.

        A published document is preferred to a draft. A document named `index` is also found at the address of
        its folder.
        """
        if (target, origin) not in self._found:
            self._found[target, origin] = self._find(target, origin)
        return self._found[target, origin]

    def _find(self, target: str, origin: str) -> Document | None:
        for address in _with_index(target):
            wanted = normalize_path(unquote(address))
            for pages, value, _ in self.find_matches(address, origin):
                found = [d for d in self._candidates(pages, value) if self._is_at(d, wanted, origin)]
                if found:
                    return min(found, key=lambda d: (d.status != PUBLISHED, d.path))
        return None

    def must_be_document(self, match: AddressMatch, target: str) -> bool:
        folder = dirname(normalize_path(unquote(target)))
        is_known = folder != "/" and self._document_counts_by_folder[folder] >= MIN_IN_FOLDER
        return not _FILE_EXTENSION.search(target) and (match.addresses.is_exclusive or is_known)

    @cached_property
    def _document_counts_by_folder(self) -> Counter[str]:
        types = {pages.type.uid for pages in self.pages}
        documents = (d for uid in types for d in self._snapshot.tables[uid].versions.values())
        return Counter(dirname(parse_address(url)[1]) for d in documents if (url := self.url(d)))

    def is_untranslated(self, match: AddressMatch, target: str) -> bool:
        """Return True if `target` is the address of a missing translation of an existing document."""
        default = self._settings.locales.default
        for address in _with_index(target):
            wanted = normalize_path(unquote(address))
            for pages, value, locale in self.find_matches(address, match.addresses.origin):
                documents = (d for d in self._candidates(pages, value) if d.locale == default)
                urls = (self.url_in_locale(locale, document) for document in documents) if locale else ()
                if any(url and parse_address(url)[1] == wanted for url in urls):
                    return True
        return False

    def url_in_locale(self, locale: str, document: Document) -> str | None:
        pattern = pattern_of(document.type, locale, self._settings)
        return address_of(document, pattern.replace("{locale}", locale), self._layout) if pattern else None

    def find_matches(self, target: str, origin: str = "") -> Iterator[AddressMatch]:
        path = normpath("/" + unquote(target).lstrip("/"))
        if len(path) > MAX_ADDRESS_CHARS:
            return
        for pages in self.pages:
            found = pages.pattern.match(path) if origin in ("", pages.origin) else None
            if found is not None:
                yield AddressMatch(pages, found.get("key", ""), found.get("locale", pages.locale))

    def _is_at(self, document: Document, address: str, origin: str) -> bool:
        url = self.url(document)
        found = parse_address(url) if url else None
        return found is not None and found[1] == address and origin in ("", found[0])

    def _candidates(self, pages: TypeAddresses, value: str) -> list[Document]:
        table = self._snapshot.tables[pages.type.uid]
        if not pages.key:
            return list(table.versions.values())
        if pages.key in ("documentId", "name"):
            document_id = value if pages.key == "documentId" else id_of_name(value)
            versions = (table.versions.get((document_id, *at)) for at in table.order)
            found = [document for document in versions if document is not None]
            if found or pages.key == "documentId":
                return found
        return self.documents_by_placeholder(pages.type, pages.key).get(value, [])

    def documents_by_placeholder(self, type_: Type, name: str) -> Mapping[str, list[Document]]:
        if (type_.uid, name) not in self._values:
            documents = list(self._snapshot.tables[type_.uid].versions.values())
            found: dict[str, list[Document]] = defaultdict(list)
            for document, value in zip(documents, self._values_of(documents, type_, name), strict=True):
                if value not in (None, ""):
                    found[str(value).strip("/")].append(document)
            self._values[type_.uid, name] = found
        return self._values[type_.uid, name]

    def _values_of(self, documents: list[Document], type_: Type, name: str) -> list[object]:
        if name != "name":
            return column_of(documents, type_.position[name])
        claims = (self._layout.claim(document.path) for document in documents)
        return [claim.name if claim else None for claim in claims]


def addresses_of_page(address: str) -> tuple[str, ...]:
    path = normalize_path(unquote(address))
    return path, *(path.removesuffix(name) or "/" for name in INDEX_NAMES if path.endswith(name))


def _with_index(target: str) -> tuple[str, ...]:
    return target, *(target.rstrip("/") + name for name in INDEX_NAMES)


def _pages(type_: Type, pattern: str, locale: str, locales: tuple[str, ...]) -> TypeAddresses:
    path = normpath("/" + path_of(pattern).lstrip("/"))
    texts = _PLACEHOLDER.split(path)
    literals, placeholders = texts[::2], texts[1::2]
    whole = (split_field(each)[0] for each in placeholders if not split_field(each)[1])
    key = next((name for name in whole if name != "locale"), "")
    start = unquote(literals[0])
    parts: list[Part] = [LiteralPart((start,))]
    unnamed = {(key, ""): "key", ("locale", ""): "locale"}
    for each, literal in zip(placeholders, literals[1:], strict=True):
        parts.append(_values_in(each, locales, unnamed.pop(split_field(each), "")))
        if literal:
            parts.append(LiteralPart((unquote(literal),)))
    segments = (segment for segment in path.split("/") if segment)
    # Assume that the front end has no other pages below a fixed segment or a locale.
    is_exclusive = any(set(placeholders_in(segment)) <= {"locale"} for segment in segments)
    address = AddressPattern(tuple(parts))
    return TypeAddresses(type_, origin_of(pattern), address, start, key, locale, is_exclusive)


def _values_in(placeholder: str, locales: tuple[str, ...], part_name: str) -> Part:
    name, date_part = split_field(placeholder)
    if date_part:
        return PlaceholderPart(_NO_DIGIT, part_name)
    if name == "locale":
        return LiteralPart(locales, part_name)
    keeps_slashes = name == "name" or placeholder.startswith(KEEPS_SLASHES)
    return PlaceholderPart(_LINE_BREAK if keeps_slashes else _SLASH, part_name)
