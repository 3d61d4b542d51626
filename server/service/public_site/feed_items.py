"""Feed items, which contain only values that the public may see."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import orjson

from server.auth.permissions import may_find
from server.bounded import Cache
from server.config.model import Settings, with_values
from server.config.public_site import EVERY, MEDIA_URL, NO_FIELD, Feed
from server.documents.addresses import origin_of
from server.documents.document import Document
from server.index.find import find
from server.query import qs
from server.query.ast import Page
from server.query.serialize import query_string
from server.schema.model import Attribute, Schema, Type, content_of, title_of
from server.service.public_site.blocks_html import blocks_to_html
from server.service.public_site.clean_html import clean, link_resolver
from server.service.public_site.public_reader import PublicSite
from server.service.read import Reader
from server.service.render import Renderer

MAX_CACHE_BYTES, ITEM_BYTES = 16 * 1024 * 1024, 3000
MAX_TITLE_CHARS = 200  # limit for titles that are taken from the summary
# default attributes, by key of `item`
_DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "summary": ("summary", "description", "excerpt", "abstract", "teaser", "lead"),
    "date": ("publishedOn", "publishDate", "pubDate", "date", "published"),
    "author": ("author", "authors", "byline"),
    "image": ("cover", "image", "thumbnail", "hero", "picture"),
}
# In MDX, a paragraph that begins with one of these words is JavaScript.
_MODULE = re.compile(r"(?:import|export)\b")
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_TEXTS = frozenset(("string", "text"))
_KINDS: Mapping[str, frozenset[str]] = {
    "summary": _TEXTS,
    "date": frozenset(("date", "datetime")),
    "author": _TEXTS | {"array", "relation"},
    "image": frozenset(("media",)),
}


class Picture(NamedTuple):
    """An image in a feed. `size` is in bytes."""

    url: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class Item:
    """A feed item. `content` is HTML; other fields are plain text."""

    id: str
    address: str
    title: str
    summary: str
    content: str
    published: datetime
    updated: datetime
    authors: tuple[str, ...]
    image: Picture | None
    locale: str
    # the item's text, by format name
    written: dict[str, str] = field(default_factory=dict, compare=False)


def feed_items(feed: Feed, site: PublicSite) -> list[Item]:
    """Return the items of a feed, newest first unless the feed has a different sort order.

    If the feed's parameters are invalid, the errors are the same as for an API request.
    """
    found: list[Item] = []
    for type_ in (t for t in site.types if t.singular in feed.types):
        found += _items_of_type(feed, type_, site)
    if len(feed.types) > 1 or len(_locales(feed, site.state.settings)) > 1:
        found.sort(key=lambda item: (item.published, item.id), reverse=True)
    return found[: feed.limit]


def _locales(feed: Feed, settings: Settings) -> tuple[str, ...]:
    if EVERY in feed.locales:
        return settings.locales.available
    return feed.locales or (settings.locales.default,)


def _items_of_type(feed: Feed, type_: Type, site: PublicSite) -> Iterator[Item]:
    state = site.state
    names = item_attributes(feed, type_, site)
    settings = with_values(state.settings, {"api.populate_with_pagination": True})
    reader = Reader(replace(state, settings=settings), type_, site.actor, budget=site.budget)
    params: dict[str, Any] = {"populate": _populate(names.values(), type_, state.schema)}
    params |= {"sort": f"{names.get('date', 'publishedAt')}:desc", **feed.parameters}
    for locale in _locales(feed, settings) if type_.localized else (settings.locales.default,):
        located = {**params, "locale": locale} if type_.localized else params
        query = reader.query(qs.parse(query_string(located)), many=True)
        view = reader.view(query)
        render = Renderer(view).renderer_for(query.selection)
        for document in _with_addresses(
            site, find(view, query._replace(page=Page(0, 10**9, 1))).documents, feed
        ):
            yield _cached_item(document, render(document), names, site)


def _with_addresses(site: PublicSite, documents: Sequence[Document], feed: Feed) -> Iterator[Document]:
    count = 0
    for document in documents:
        if count == feed.limit:
            return
        if site.address(document):
            count += 1
            yield document


# --- attributes -----------------------------------------------------------------------------------


def item_attributes(feed: Feed, type_: Type, site: PublicSite) -> dict[str, str]:
    """Map each field of a feed's items to the path of the attribute that contains its value."""
    names = {key: name for key, name in feed.item.items() if name != NO_FIELD}
    title, body = title_of(type_), content_of(type_)
    defaults = {"title": title, "content": body} | {
        key: next((n for n in wanted if _fits(type_.attributes.get(n), key, site)), None)
        for key, wanted in _DEFAULTS.items()
    }
    return {**{key: name for key, name in defaults.items() if name and key not in feed.item}, **names}


def _fits(attribute: Attribute | None, key: str, site: PublicSite) -> bool:
    if attribute is None or not attribute.visible or attribute.type not in _KINDS[key]:
        return False
    return attribute.type != "relation" or (
        attribute.target is not None and may_find(site.actor, attribute.target)
    )


def _populate(paths: Any, type_: Type, schema: Schema) -> dict[str, Any]:
    populate: dict[str, Any] = {}
    for path in paths:
        inside, current, names = populate, type_, path.split(".")
        for name in names:
            attribute = current.columns.get(name)
            if attribute is None or attribute.scalar:
                break
            inside = inside.setdefault(name, {"populate": {}})["populate"]
            target = schema.types.get(attribute.component or attribute.target or "")
            if target is None:
                break
            current = target
    return _without_empty(populate)


def _without_empty(populate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"populate": _without_empty(inner["populate"])} if inner["populate"] else "true"
        for name, inner in populate.items()
    }


def _values_at(data: Any, path: str) -> Iterator[Any]:
    if isinstance(data, list):
        for entry in data:
            yield from _values_at(entry, path)
    elif not path:
        if data is not None:
            yield data
    elif isinstance(data, Mapping):
        first, _, rest = path.partition(".")
        yield from _values_at(data.get(first), rest)


# --- items ----------------------------------------------------------------------------------------


def _cached_item(document: Document, body: bytes, names: Mapping[str, str], site: PublicSite) -> Item:
    address = site.address(document) or ""
    times = document.updated_at, document.published_at
    media_url = media_origin(site.state.settings, address)
    key = document.type, document.key, document.path, times, body, address, media_url, tuple(names.items())
    item = _items.get(key)
    if item is None:
        item = _item(document, orjson.loads(body), names, site)
        _items.put(key, item)
    return item


def _size(key: tuple[Any, ...], item: Item) -> int:
    # The content is stored several times: in the key, in `content`, and in the item's text for each format.
    return 4 * (len(item.content) + len(item.summary)) + ITEM_BYTES


# After a change, most items of a feed are the same as before. The cache saves 0.5 ms for each of them.
_items: Cache[tuple[Any, ...], Item] = Cache(MAX_CACHE_BYTES, _size)


def _item(document: Document, data: Mapping[str, Any], names: Mapping[str, str], site: PublicSite) -> Item:
    settings, type_ = site.state.settings, document.type
    address = site.address(document) or ""
    media_url = media_origin(settings, address)

    def text(key: str) -> str:
        found = (
            (v for v in _values_at(data, names.get(key, "")) if isinstance(v, str)) if key in names else ()
        )
        return " ".join(next(iter(found), "").split())

    updated = _time(document.updated_at)
    dates = (
        [_time(v) for v in _values_at(data, names["date"]) if isinstance(v, str)] if "date" in names else []
    )
    published = next(iter(dates), _time(document.published_at or document.created_at))
    summary = text("summary")
    title = text("title") or summary[:MAX_TITLE_CHARS] or document.document_id
    raw = list(_raw_values_at(data, names["content"])) if "content" in names else []
    if document.path.endswith(".mdx"):
        raw = [strip_mdx_modules(value) if isinstance(value, str) else value for value in raw]
    html = "".join(map(_html, raw))
    content = clean(html, link_resolver(address, media_url)) if html else ""
    site.budget.write(len(content))
    number = uuid5(NAMESPACE_URL, f"{type_.uid}/{document.document_id}/{document.locale}")
    return Item(
        f"urn:uuid:{number}",
        address,
        title,
        summary,
        content,
        published,
        max(updated, published) if dates else updated,
        tuple(_authors(data, names["author"], type_, site.state.schema)) if "author" in names else (),
        _picture(data, names, media_url),
        document.locale,
    )


def _raw_values_at(data: Mapping[str, Any], path: str) -> Iterator[Any]:
    parent, _, name = path.rpartition(".")
    for holder in _values_at(data, parent) if parent else (data,):
        if isinstance(holder, Mapping) and holder.get(name) is not None:
            yield holder[name]


def strip_mdx_modules(text: str) -> str:
    """Remove `import` and `export` statements from MDX, except in code blocks."""
    kept: list[str] = []
    fence, in_module = "", False  # the fence of the current code block, and whether the line is JavaScript
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif in_module or _MODULE.match(line):
            in_module = bool(line.strip())
        elif found and not ("`" in found[1] and "`" in found[2]):
            fence = found[1]
        if not in_module:
            kept.append(line)
    return "\n".join(kept)


def _html(value: Any) -> str:
    if isinstance(value, str):
        return str(import_module("server.formats.markdown").markdown_to_html(value))
    return blocks_to_html(value)


def _authors(data: Mapping[str, Any], path: str, type_: Type, schema: Schema) -> Iterator[str]:
    target = _target_of(type_, path.split("."), schema)
    title = title_of(target) if target else None
    for value in _values_at(data, path):
        name = value.get(title) if isinstance(value, Mapping) and title else value
        if isinstance(name, str) and name.strip():
            yield " ".join(name.split())


def _target_of(type_: Type, names: list[str], schema: Schema) -> Type | None:
    current: Type | None = type_
    for name in names:
        attribute = current.columns.get(name) if current else None
        current = schema.types.get(attribute.component or attribute.target or "") if attribute else None
    return current


def _picture(data: Mapping[str, Any], names: Mapping[str, str], media_url: str) -> Picture | None:
    for value in _values_at(data, names["image"]) if "image" in names else ():
        url = value.get("url") if isinstance(value, Mapping) else value
        if not isinstance(url, str) or not url.startswith(("/", "https://", "http://")):
            continue
        absolute = media_url + url if url.startswith("/") else url
        about = value if isinstance(value, Mapping) else {}
        size = about.get("size") or 0
        return Picture(absolute, str(about.get("mime") or "image/jpeg"), round(size * 1000))
    return None


def media_origin(settings: Settings, address: str) -> str:
    url = settings.urls.get(MEDIA_URL)
    pattern = url.pattern("") if url else None
    return pattern.rstrip("/") if pattern else origin_of(address)


def _time(text: str) -> datetime:
    # A time without a time zone is in UTC.
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
