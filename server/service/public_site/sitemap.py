"""Sitemaps of public pages (https://www.sitemaps.org/protocol.html)."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter

from server.documents.addresses import origin_of
from server.documents.document import Document
from server.errors import NotFoundError
from server.index.fragments import Make
from server.service.public_site.public_reader import PublicSite
from server.service.public_site.xml import HEAD, element, parent_element

MAX_URLS = 50_000
MAX_BYTES = 50 * 1024 * 1024
NAME = "sitemap.xml"
MEDIA_TYPE = "application/xml; charset=utf-8"
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
Key = tuple[str, str]  # uid and documentId
_XHTML = "http://www.w3.org/1999/xhtml"


def part_name(number: int) -> str:
    return f"sitemap-{number}.xml"


def sitemaps(site: PublicSite, max_urls: int = MAX_URLS, max_bytes: int = MAX_BYTES) -> Mapping[str, bytes]:
    """Return the sitemap files by name. If there are several sitemaps, the file NAME is an index of them.

    Raises NotFoundError if no content type has public URLs.
    """
    if not site.types:
        raise NotFoundError()
    urls = list(_url_elements(site))
    parts = list(_split(urls, max_urls, max_bytes))
    if len(parts) <= 1:
        return {NAME: _urlset(parts[0] if parts else [])}
    named = {part_name(number): _urlset(part) for number, part in enumerate(parts, 1)}
    origin = origin_of(min(address for _, address in site.documents()))
    entries = (parent_element("sitemap", [element("loc", f"{origin}/{name}")]) for name in named)
    index = HEAD + parent_element("sitemapindex", entries, xmlns=_NAMESPACE) + "\n"
    return {NAME: index.encode(), **named}


def _url_elements(site: PublicSite) -> Iterator[bytes]:
    by_document: dict[Key, list[tuple[Document, str]]] = {}
    by_address: dict[str, Document] = {}
    for document, address in site.documents():
        if document.type.localized:
            by_document.setdefault((document.type.uid, document.document_id), []).append((document, address))
        by_address.setdefault(address, document)
    default = site.state.settings.locales.default
    writers: dict[tuple[str, str], Make] = {}
    for address, document in sorted(by_address.items(), key=itemgetter(0)):
        type_, key = document.type, (document.type.uid, document.locale)
        versions = by_document.get((type_.uid, document.document_id), ())
        if len(versions) > 1:
            yield _url(address, document, _alternate_links(versions, default))
            continue
        if key not in writers:
            writers[key] = site.cached("sitemap", type_, document.locale, partial(_only_url, site))
        yield writers[key](document)


def _only_url(site: PublicSite, document: Document) -> bytes:
    return _url(site.address(document) or "", document, ())


def _url(address: str, document: Document, alternates: Iterable[str]) -> bytes:
    elements = [element("loc", address), element("lastmod", document.updated_at), *alternates]
    return parent_element("url", elements).encode()


def _alternate_links(versions: Iterable[tuple[Document, str]], default: str) -> Iterator[str]:
    for document, address in versions:
        language = document.locale.replace("_", "-")
        yield element("xhtml:link", rel="alternate", hreflang=language, href=address)
        if document.locale == default:
            yield element("xhtml:link", rel="alternate", hreflang="x-default", href=address)


def _split(urls: Iterable[bytes], max_urls: int, max_bytes: int) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = head = len(_urlset([]))
    for url in urls:
        length = len(url) + 1
        if part and (len(part) == max_urls or size + length > max_bytes):
            yield part
            part, size = [], head
        part.append(url)
        size += length
    if part:
        yield part


def _urlset(urls: Iterable[bytes]) -> bytes:
    start, end = parent_element("urlset", ["\0"], xmlns=_NAMESPACE, xmlns__xhtml=_XHTML).encode().split(b"\0")
    return HEAD.encode() + start + b"\n".join(urls) + end + b"\n"
