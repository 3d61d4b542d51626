"""Links and headings in Markdown, and completion of links."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote, unquote

from server.documents.document import Document
from server.documents.path_rules import ENDINGS, MARKDOWN
from server.index.dangling import MEDIA
from server.lsp.keys import find_region
from server.lsp.markdown_code import Code, code_at, find_code
from server.lsp.positions import Span, Text
from server.lsp.protocol import Json
from server.lsp.view import Source, View
from server.paths import UPLOADS, UPLOADS_URL
from server.site.check.page_addresses import TypeAddresses
from server.storage.media import mime_type

MAX_ITEMS = 100
MAX_CANDIDATES = 500
# The start of a link or image, or a whole link in a definition or in HTML.
_LINK = re.compile(
    r"""(!?)\[|^ {1,3}\[[^\]\n]+\]:\s*<?([^\s>]+)|\b(?:src|href)=["']([^"'\s]+)""",
    re.M,
)
_DEFINITION = re.compile(r"^\[[^\]\n]+\]:\s*<?([^\s>]+)", re.M)
_DESTINATION = re.compile(r"""\(\s*<?([^\s()<>"']+)""")
_OPEN_LINK = re.compile(r"""(!?)\[|\b(?:src|href)=["']([^"'\s]*)\Z""")
_BRACKET = re.compile(r"[\[\]]")
_OPEN_DESTINATION = re.compile(r"\(\s*<?([^\s()<>]*)\Z")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*)$", re.M)
_UNDERLINED = re.compile(r"^(?=\S)(?![-=>#*+`|])(.+)\r?\n(=+|-{2,})[ \t]*\r?$", re.M)
_FILE, _REFERENCE = 17, 18


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in a Markdown text."""

    level: int
    text: str
    span: Span

    @property
    def anchor(self) -> str:
        # Anchors have the same form as on GitHub.
        # Search for links only up to here, so that the regular expression takes linear time.
        end = self.text.rfind(")") + 1
        text = re.sub(r"[`*_]|\]\([^)]*\)|\[", "", self.text[:end]) + re.sub(r"[`*_\[]", "", self.text[end:])
        plain = re.sub(r"[^\w\- ]", "", text.lower())
        return plain.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Link:
    """A link or image, with the span of its destination."""

    destination: str
    span: Span
    is_image: bool = False


def find_headings(text: str, start: int = 0) -> list[Heading]:
    """Return the headings after index `start`. Headings in fenced code and comments are omitted."""
    code = [span for span in find_code(text, start) if not span.is_inline]
    found = [
        Heading(len(one[1]), _heading_text(one[2]), one.span()) for one in _HEADING.finditer(text, start)
    ]
    found += [
        Heading(1 if one[2][0] == "=" else 2, one[1].strip(), (one.start(), one.end()))
        for one in _UNDERLINED.finditer(text, start)
    ]
    return sorted((h for h in found if not code_at(h.span[0], code)), key=lambda heading: heading.span)


def find_links(text: str, start: int = 0) -> Iterator[Link]:
    """Yield the links and images after index `start`. Links in code and comments are omitted."""
    code, at, line_end = find_code(text, start), start, -1
    inline: dict[int, re.Match[str]] = {}
    while found := _LINK.search(text, at):
        if around := code_at(found.start(), code):
            at = around.end
            continue
        destination: re.Match[str] | None = found
        if found[1] is not None:
            if found.start() > line_end:
                inline, line_end = _find_inline_links(text, found.start(), _DESTINATION, code)
            destination = inline.get(found.end() - 1) or _DEFINITION.match(text, found.start())
        at = destination.end() if destination else found.end()
        if destination:
            group = destination.lastindex or 0
            yield Link(destination[group], destination.span(group), found[1] == "!")


def _find_inline_links(
    text: str, start: int, pattern: re.Pattern[str], code: list[Code]
) -> tuple[dict[int, re.Match[str]], int]:
    """Find the links between index `start` and the end of the line. Brackets in code don't count.

    Return a mapping from the index of each link's opening bracket to the match for its destination. Also
    return the index of the end of the line.
    """
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    found: dict[int, re.Match[str]] = {}
    # Brackets are read from right to left. `inner` is the match after the last closing bracket, and `outer`
    # is the match after the closing bracket of the text around it.
    inner: re.Match[str] | None = None
    outer: re.Match[str] | None = None
    for bracket in reversed(list(_BRACKET.finditer(text, start, end))):
        if code_at(bracket.start(), code):
            continue
        if bracket[0] == "]":
            inner, outer = pattern.match(text, bracket.end()), inner
        else:
            if inner:
                found[bracket.start()] = inner
            inner = outer
    return found, end


def _heading_text(heading: str) -> str:
    return heading.removesuffix("\r").rstrip(" \t").rstrip("#").rstrip(" \t")


def body_start(path: str, text: str) -> int | None:
    return min(find_region(path, text).body, len(text)) if path.endswith(MARKDOWN) else None


# --- destinations ---------------------------------------------------------------------------------


def resolve_link(view: View, path: str, link: str) -> tuple[str, str] | None:
    """Return the path and anchor that a link points to, or None if it does not point to a file in the site.

    If the link is the URL of a page, the path is that of the page's document.
    """
    target, _, anchor = link.partition("#")
    plain = unquote(target)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", plain):
        return None
    if not plain:
        return path, anchor
    if plain.startswith(UPLOADS_URL):
        found = f"{UPLOADS}/{plain.removeprefix(UPLOADS_URL)}"
    elif plain.startswith("/"):
        if (page := find_linked_document(view, path, target)) is not None:
            return page.path, anchor
        found = plain.strip("/")
    else:
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), plain))
    file = _existing(view, found)
    return (file, anchor) if file else None


def find_linked_document(view: View, path: str, destination: str) -> Document | None:
    """Return the document whose page a link points to, or None if the link points elsewhere."""
    addresses, source = view.overlay.audit.addresses, view.overlay.document(path)
    if not addresses.pages or not destination.startswith("/"):
        return None
    origin = addresses.origin(source) if source else ""
    return addresses.document_at(destination.partition("?")[0], origin)


def link_at(text: Text, path: str, index: int) -> Link | None:
    return next((link for link in links_in(text, path) if link.span[0] <= index <= link.span[1]), None)


def _existing(view: View, path: str) -> str:
    if path.startswith(".."):
        return ""
    candidates = (path, *(f"{path}{ending}" for ending in ENDINGS), *(f"{path}/index{e}" for e in MARKDOWN))
    for candidate in candidates:
        if candidate in view.texts or (view.root / candidate).is_file():
            return candidate
    return ""


def anchor_span(view: View, path: str, anchor: str) -> Span | None:
    text = view.text(path)
    start = body_start(path, text.value) if text else None
    if text is None or start is None or not anchor:
        return None
    lowered = unquote(anchor).lower()
    return next((h.span for h in find_headings(text.value, start) if h.anchor == lowered), None)


# --- completion -----------------------------------------------------------------------------------


def complete_link(view: View, source: Source, index: int) -> Json:
    """Return the completions for a link: documents, media files and headings."""
    text = source.text
    line = text.value[text.starts[text.line_of(index)] : index]
    found = _unfinished_link(line)
    if found is None:
        return {"isIncomplete": False, "items": []}
    typed, is_image = found
    start = index - len(typed)
    if "#" in typed:
        return _complete_anchor(view, source, typed, (start, index))
    by_address = typed.startswith("/") and view.overlay.audit.addresses.pages
    documents = _page_completions if by_address else _documents
    items = [] if is_image else list(documents(view, source, unquote(typed).casefold()))
    items += _files(view, source, typed.casefold(), only_images=is_image)
    end = index + len(re.match(r"[^\s()<>\"']*", text.value[index : index + 200])[0])  # type: ignore[index]
    range_ = text.range((start, end))
    made = [
        {**item, "sortText": f"{n:04}", "textEdit": {"range": range_, "newText": item.pop("new")}}
        for n, item in enumerate(items[:MAX_ITEMS])
    ]
    return {"isIncomplete": len(items) >= MAX_ITEMS, "items": made}


def _unfinished_link(line: str) -> tuple[str, bool] | None:
    """Return the unfinished link destination at the end of a line, and whether the link is an image.

    Return None if the line does not end inside a link.
    """
    inline, _ = _find_inline_links(line, 0, _OPEN_DESTINATION, [])
    for found in _OPEN_LINK.finditer(line):
        if found[1] is None:
            return found[2], False
        if found.end() - 1 in inline:
            return inline[found.end() - 1][1], found[1] == "!"
    return None


def _complete_anchor(view: View, source: Source, typed: str, span: Span) -> Json:
    target = typed.partition("#")[0]
    found = resolve_link(view, source.path, target) if target else (source.path, "")
    text = view.text(found[0]) if found else None
    start = body_start(found[0], text.value) if found and text else None
    if text is None or start is None:
        return {"isIncomplete": False, "items": []}
    range_ = source.text.range(span)
    items = [
        {
            "label": f"#{heading.anchor}",
            "kind": _REFERENCE,
            "detail": heading.text,
            "filterText": f"{target}#{heading.anchor}",
            "sortText": f"{n:04}",
            "textEdit": {"range": range_, "newText": f"{target}#{heading.anchor}"},
        }
        for n, heading in enumerate(find_headings(text.value, start))
    ]
    return {"isIncomplete": False, "items": items}


def _documents(view: View, source: Source, query: str) -> Iterator[Json]:
    plain = query.lstrip("./")
    count = 0
    for type_ in view.schema.content_types:
        for document_id, entry in view.titles.titles_of(view.snapshot, type_.uid).items():
            if plain not in entry.folded and plain.rpartition("/")[2] not in entry.folded:
                continue
            document = view.find((type_.uid, document_id), source.claim.locale)
            if document is None or document.path == source.path:
                continue
            link = quote(posixpath.relpath(document.path, posixpath.dirname(source.path)))
            yield _document_item(view, source, link, document, entry.title_in(document.locale))
            count += 1
            if count >= MAX_ITEMS:
                return


def _document_item(view: View, source: Source, link: str, document: Document, title: str) -> Json:
    key = [document.type.uid, document.document_id]
    return {
        "label": link,
        "kind": _REFERENCE,
        "detail": title,
        "filterText": f"{link} {title}",
        "data": {"uri": view.uri(source.path), "key": key, "locale": document.locale},
        "new": link,
    }


def _page_completions(view: View, source: Source, query: str) -> Iterator[Json]:
    folder, _, name = query.rpartition("/")
    addresses, origin_of = view.overlay.audit.addresses, view.overlay.document(source.path)
    origin = addresses.origin(origin_of) if origin_of else ""
    offered: set[str] = set()
    for pages in addresses.pages:
        start = pages.prefix.casefold()
        if origin in ("", pages.origin) and (start.startswith(folder) or folder.startswith(start)):
            for document, title in islice(
                _matching_documents(view, pages, name, source.claim.locale), MAX_CANDIDATES
            ):
                address = addresses.address(document)
                is_new = address is not None and address not in offered and document.path != source.path
                if address and is_new and unquote(address).casefold().startswith(folder):
                    offered.add(address)
                    yield _document_item(view, source, address, document, title)
                if len(offered) >= MAX_ITEMS:
                    return


def _matching_documents(
    view: View, pages: TypeAddresses, name: str, locale: str
) -> Iterator[tuple[Document, str]]:
    titles = view.titles.titles_of(view.snapshot, pages.type.uid)
    values = view.overlay.audit.addresses.documents_by_placeholder(pages.type, pages.key) if pages.key else {}
    for value in sorted(value for value in values if name in value.casefold()):
        for document in values[value]:
            entry = titles.get(document.document_id)
            yield document, entry.title_in(document.locale) if entry else ""
    for document_id, entry in titles.items():
        found = view.find((pages.type.uid, document_id), locale) if name in entry.folded else None
        if found is not None:
            yield found, entry.title_in(found.locale)


def _files(view: View, source: Source, query: str, *, only_images: bool) -> Iterator[Json]:
    name_part = query.removeprefix(UPLOADS_URL)
    count = 0
    for name in sorted(view.snapshot.media):
        if name_part not in name.casefold() or (only_images and not mime_type(name).startswith("image/")):
            continue
        link = UPLOADS_URL + quote(name)
        data = {"uri": view.uri(source.path), "key": [MEDIA, name]}
        yield {"label": link, "kind": _FILE, "filterText": link, "data": data, "new": link}
        count += 1
        if count >= MAX_ITEMS:
            return


def links_in(source_text: Text, path: str) -> list[Link]:
    start = body_start(path, source_text.value)
    return [] if start is None else list(find_links(source_text.value, start))
