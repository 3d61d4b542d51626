"""Sitemaps (https://www.sitemaps.org/protocol.html) of all pages that show published documents.

If there is more than one, `/sitemap.xml` is their index.
"""

from collections.abc import Iterable, Iterator, Mapping

from server.documents.addresses import origin_of
from server.documents.document import Document
from server.errors import NotFoundError
from server.service.publishing.public_reader import PublicSite
from server.service.publishing.xml import HEAD, element, parent

MAX_URLS = 50_000
MAX_BYTES = 50 * 1024 * 1024
NAME = "sitemap.xml"
MEDIA_TYPE = "application/xml; charset=utf-8"
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_XHTML = "http://www.w3.org/1999/xhtml"


def part_name(number: int) -> str:
    """Return the file name of sitemap number `number` (starting at 1)."""
    return f"sitemap-{number}.xml"


def sitemaps(site: PublicSite, max_urls: int = MAX_URLS, max_bytes: int = MAX_BYTES) -> Mapping[str, str]:
    """Return the sitemaps by file name, beginning with NAME.

    Raises NotFoundError if no content type has public URLs.
    """
    if not site.types:
        raise NotFoundError()
    urls = list(_urls(site))
    parts = list(_split(urls, max_urls, max_bytes))
    if len(parts) <= 1:
        return {NAME: _urlset(parts[0] if parts else [])}
    named = {part_name(number): _urlset(part) for number, part in enumerate(parts, 1)}
    origin = origin_of(min(address for _, address in site.documents()))
    entries = (parent("sitemap", [element("loc", f"{origin}/{name}")]) for name in named)
    index = HEAD + parent("sitemapindex", entries, xmlns=_NAMESPACE) + "\n"
    return {NAME: index, **named}


def _urls(site: PublicSite) -> Iterator[str]:
    """Yield an element for each distinct address, sorted by address."""
    by_document: dict[tuple[str, str], list[tuple[Document, str]]] = {}
    by_address: dict[str, Document] = {}
    for document, address in site.documents():
        by_document.setdefault((document.type.uid, document.document_id), []).append((document, address))
        by_address.setdefault(address, document)
    default = site.state.settings.locales.default
    for address, document in sorted(by_address.items(), key=lambda pair: pair[0]):
        versions = by_document[document.type.uid, document.document_id]
        alternates = list(_alternates(versions, default)) if len(versions) > 1 else []
        yield parent("url", [element("loc", address), element("lastmod", document.updated_at), *alternates])


def _alternates(versions: Iterable[tuple[Document, str]], default: str) -> Iterator[str]:
    """Yield a link for each locale of a document, and the default locale's link for all other languages."""
    for document, address in versions:
        language = document.locale.replace("_", "-")
        yield element("xhtml:link", rel="alternate", hreflang=language, href=address)
        if document.locale == default:
            yield element("xhtml:link", rel="alternate", hreflang="x-default", href=address)


def _split(urls: Iterable[str], max_urls: int, max_bytes: int) -> Iterator[list[str]]:
    part: list[str] = []
    size = head = len(_urlset([]).encode())
    for url in urls:
        length = len(url.encode()) + 1
        if part and (len(part) == max_urls or size + length > max_bytes):
            yield part
            part, size = [], head
        part.append(url)
        size += length
    if part:
        yield part


def _urlset(urls: Iterable[str]) -> str:
    return HEAD + parent("urlset", urls, xmlns=_NAMESPACE, xmlns__xhtml=_XHTML) + "\n"
