"""Feeds as RSS 2.0, Atom 1.0 (RFC 4287) and JSON Feed 1.1 (docs/feeds.md)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, NamedTuple

import orjson

from server.config.public_site import EVERY, Feed
from server.documents.addresses import origin_of, pattern_of
from server.errors import NotFoundError
from server.service.public_site.feed_items import Item, feed_items
from server.service.public_site.public_reader import PublicSite
from server.service.public_site.xml import HEAD, element, parent_element, remove_illegal

# last change of a feed without items
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_CONTENT_NS = "http://purl.org/rss/1.0/modules/content/"
_DC_NS = "http://purl.org/dc/elements/1.1/"
_ATOM_NS = "http://www.w3.org/2005/Atom"


@dataclass(frozen=True, slots=True)
class FeedContent:
    """The content of a feed, independent of the feed format. `url` is the URL of the feed itself."""

    title: str
    description: str
    link: str
    url: str
    language: str
    author: str
    items: Sequence[Item]

    @property
    def updated(self) -> datetime:
        return max((item.updated for item in self.items), default=_NEVER)


class FeedFormat(NamedTuple):
    """A feed format: its media type, and the function that writes a feed in this format."""

    media_type: str
    write: Callable[[FeedContent], str]


def feed_text(site: PublicSite, name: str, extension: str) -> str:
    """Return the text of a feed. Raises NotFoundError if there is no public feed with this name."""
    feed = site.state.settings.feeds.get(name)
    if feed is None or not is_public(feed, site):
        raise NotFoundError()
    channel = _channel(name, feed, site)
    return FORMATS[extension].write(replace(channel, url=f"{channel.url}.{extension}"))


def is_public(feed: Feed, site: PublicSite) -> bool:
    return any(type_.singular in feed.types for type_ in site.types)


def _channel(name: str, feed: Feed, site: PublicSite) -> FeedContent:
    # The channel's URL has no extension, because the channel is independent of the format.
    settings = site.state.settings
    link = feed.link or _home_url(feed, site)
    title = feed.title or settings.name
    locales = feed.locales or (settings.locales.default,)
    return FeedContent(
        title,
        feed.description or title,
        link,
        feed.url or f"{origin_of(link)}/feeds/{name}",
        locales[0].replace("_", "-") if len(locales) == 1 and EVERY not in locales else "",
        settings.name,
        feed_items(feed, site),
    )


def _home_url(feed: Feed, site: PublicSite) -> str:
    settings, subjects = site.state.settings, site.state.schema.subjects
    for name in feed.types:
        for locale in (*feed.locales, *settings.locales.available):
            if name in subjects and (pattern := pattern_of(subjects[name], locale, settings)):
                return f"{origin_of(pattern)}/"
    raise NotFoundError()


def _cached_text(item: Item, name: str, write: Callable[[Item], str]) -> str:
    text = item.written.get(name)
    if text is None:
        text = item.written[name] = write(item)
    return text


# --- RSS ------------------------------------------------------------------------------------------


def _rss(channel: FeedContent) -> str:
    head = [
        element("title", channel.title),
        element("link", channel.link),
        element("description", channel.description),
        element("atom:link", href=channel.url, rel="self", type="application/rss+xml"),
    ]
    head += [element("language", channel.language)] if channel.language else []
    head += [element("lastBuildDate", _rfc822(channel.updated))] if channel.items else []
    items = (_cached_text(item, "rss", _rss_item) for item in channel.items)
    inner = parent_element("channel", [*head, *items])
    names = {"xmlns__atom": _ATOM_NS, "xmlns__content": _CONTENT_NS, "xmlns__dc": _DC_NS}
    return HEAD + parent_element("rss", [inner], version="2.0", **names) + "\n"


def _rss_item(item: Item) -> str:
    return parent_element("item", _rss_elements(item))


def _rss_elements(item: Item) -> Iterator[str]:
    yield element("title", item.title)
    yield element("link", item.address)
    yield element("guid", item.id, isPermaLink="false")
    yield element("pubDate", _rfc822(item.published))
    yield from (element("dc:creator", author) for author in item.authors)
    if item.summary:
        yield element("description", item.summary)
    if item.content:
        yield element("content:encoded", item.content)
    if item.image:
        picture = item.image
        yield element("enclosure", url=picture.url, length=str(picture.size), type=picture.mime)


def _rfc822(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC), usegmt=True)


# --- Atom -----------------------------------------------------------------------------------------


def _atom(channel: FeedContent) -> str:
    head = [
        element("id", channel.url),
        element("title", channel.title),
        element("subtitle", channel.description),
        element("updated", _rfc3339(channel.updated)),
        element("link", href=channel.url, rel="self", type="application/atom+xml"),
        element("link", href=channel.link, rel="alternate", type="text/html"),
        parent_element("author", [element("name", channel.author)]),
    ]
    entries = (_cached_text(item, "atom", _atom_entry) for item in channel.items)
    language = {"xml__lang": channel.language} if channel.language else {}
    return HEAD + parent_element("feed", [*head, *entries], xmlns=_ATOM_NS, **language) + "\n"


def _atom_entry(item: Item) -> str:
    return parent_element("entry", _atom_elements(item))


def _atom_elements(item: Item) -> Iterator[str]:
    yield element("id", item.id)
    yield element("title", item.title)
    yield element("link", href=item.address, rel="alternate", type="text/html")
    yield element("published", _rfc3339(item.published))
    yield element("updated", _rfc3339(item.updated))
    yield from (parent_element("author", [element("name", author)]) for author in item.authors)
    if item.summary:
        yield element("summary", item.summary)
    if item.content:
        yield element("content", item.content, type="html")
    if item.image:
        picture = item.image
        length = {"length": str(picture.size)} if picture.size else {}
        yield element("link", rel="enclosure", href=picture.url, type=picture.mime, **length)


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


# --- JSON Feed ------------------------------------------------------------------------------------


def _json(channel: FeedContent) -> str:
    head: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": channel.title,
        "home_page_url": channel.link,
        "feed_url": channel.url,
        "description": channel.description,
        "language": channel.language,
        "authors": [{"name": channel.author}],
    }
    items = [_without_empty(_json_item(item)) for item in channel.items]
    text = orjson.dumps({**_without_empty(head), "items": items}, option=orjson.OPT_INDENT_2)
    return text.decode() + "\n"


def _json_item(item: Item) -> Mapping[str, Any]:
    return {
        "id": item.id,
        "url": item.address,
        "title": remove_illegal(item.title),
        "summary": remove_illegal(item.summary),
        # JSON Feed requires either `content_html` or `content_text`.
        "content_html": remove_illegal(item.content),
        "content_text": "" if item.content else remove_illegal(item.summary or item.title),
        "date_published": _rfc3339(item.published),
        "date_modified": _rfc3339(item.updated),
        "authors": [{"name": remove_illegal(author)} for author in item.authors],
        "image": item.image.url if item.image else "",
        "language": item.locale.replace("_", "-"),
    }


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


FORMATS: Mapping[str, FeedFormat] = {
    "rss": FeedFormat("application/rss+xml; charset=utf-8", _rss),
    "atom": FeedFormat("application/atom+xml; charset=utf-8", _atom),
    "json": FeedFormat("application/feed+json; charset=utf-8", _json),
}
