"""Settings for public URLs and feeds (docs/feeds.md)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.config import values
from server.errors import SetupError
from server.formats.config_file import ConfigFile
from server.formats.text_positions import KeyPath
from server.formats.tree import is_null
from server.paths import SETTINGS
from server.schema.model import DATE_PARTS, DATE_TYPES, Schema, Type
from server.schema.spelling import suggestion

# --- urls -----------------------------------------------------------------------------------------

MEDIA_URL = "upload"  # the key in `urls` for media files
KEEPS_SLASHES = "+"  # `{+name}`, as in RFC 6570: slashes in the value are not percent-encoded
EVERY_LOCALE = ""  # the key of a pattern that is used for all locales
# `{name}` is the document's name as in `options.files`. All other placeholders are the same as in `preview`.
URL_NAMES = ("documentId", "locale", "name")
DATED_FIELDS = ("createdAt", "publishedAt")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
# The origin can't contain placeholders. Fragments are not allowed, because browsers do not send them.
_URL = re.compile(
    r"https?://(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::[1-9]\d{0,4})?"
    r"(?:/(?:[^\s{}#\x00-\x1f\x7f]|\{\+?[A-Za-z0-9_-]+(?:\.[a-z]+)?\})*)?",
    re.IGNORECASE,
)
_URL_FIX = "write a URL such as https://example.org/articles/{slug}"


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """URL patterns by locale. Locales without a pattern of their own use the pattern for EVERY_LOCALE."""

    patterns: Mapping[str, str]

    def pattern(self, locale: str) -> str | None:
        return self.patterns.get(locale, self.patterns.get(EVERY_LOCALE))

    @property
    def placeholders(self) -> tuple[str, ...]:
        found = (
            name.removeprefix(KEEPS_SLASHES)
            for pattern in self.patterns.values()
            for name in _PLACEHOLDER.findall(pattern)
        )
        return tuple(dict.fromkeys(found))


def read_public_url(file: ConfigFile, *key_path: str) -> PublicUrl:
    """Read the public URL of a content type. Raises SetupError if it is invalid."""
    if not isinstance(file.get(*key_path), dict):
        return PublicUrl({EVERY_LOCALE: _url(file, *key_path)})
    if key_path[-1] == MEDIA_URL:
        raise file.refuse_value("be a URL", "write a URL such as https://cms.example.org", *key_path)
    return PublicUrl(
        {str(locale): _url(file, *key_path, locale) for locale in values.read_section(file, *key_path)}
    )


def _url(file: ConfigFile, *key_path: str) -> str:
    url = values.text(file, "", *key_path)
    if not _URL.fullmatch(url):
        raise file.refuse(
            f"{'.'.join(key_path)} must be a URL, and its host can't be a placeholder", _URL_FIX, *key_path
        )
    if MEDIA_URL in key_path[1:2] and _PLACEHOLDER.search(url):
        fix = "write the URL of the server that serves /uploads/, such as https://cms.example.org"
        raise file.refuse(f"{'.'.join(key_path)} can't contain placeholders", fix, *key_path)
    return url


def split_field(placeholder: str) -> tuple[str, str]:
    # For example, `publishedOn.year` gives ("publishedOn", "year").
    name, _, part = placeholder.removeprefix(KEEPS_SLASHES).partition(".")
    return name, part


def _known_placeholders(type_: Type) -> tuple[str, ...]:
    single = [n for n, a in type_.attributes.items() if a.selectable and a.type not in ("json", "blocks")]
    dated = [n for n in single if type_.attributes[n].type in DATE_TYPES]
    parts = (f"{name}.{part}" for name in (*dated, *DATED_FIELDS) for part in DATE_PARTS)
    return (*single, *URL_NAMES, *parts)


# --- feeds ----------------------------------------------------------------------------------------

# keys of a feed
FEED_KEYS: Mapping[str, str] = {
    "type": "The content types in the feed: a singular API id, or a list of them.",
    "title": "The feed's title. The default is the site's `name`.",
    "description": "A sentence about the feed. The default is its title.",
    "link": "The URL of the page that the feed belongs to. The default is the home page of the first type's"
    " URL.",
    "url": "The feed's own public URL, without the extension. The default is `/feeds/NAME` on the host of"
    " `link`.",
    "locale": "A locale, a list of locales, or `*` for all. The default is the site's default locale.",
    "filters": "Only documents that match these filters.",
    "sort": "The order of the documents, if there is only one type. The default is the newest first.",
    "limit": "The maximum number of documents, up to 500. The default is 20.",
    "item": "Which attributes the items contain, such as `{summary: excerpt, image: cover}`.",
}
# keys of `item`
ITEM_KEYS: Mapping[str, str] = {
    "title": "The title. The default is the attribute that the studio shows as the title.",
    "summary": "A short text. The default is `summary`, `description`, `excerpt`, `abstract`, `teaser` or"
    " `lead`.",
    "content": "The full text: Markdown or blocks. The default is the body, or the first attribute with"
    " Markdown or blocks.",
    "date": "The publication date. The default is `publishedOn`, `publishDate`, `pubDate`, `date` or"
    " `published`, else `publishedAt`.",
    "author": "A name, a list of names, or a relation to the authors. The default is `author`, `authors` or"
    " `byline`.",
    "image": "An image. The default is `cover`, `image`, `thumbnail`, `hero` or `picture`.",
}
NO_FIELD = "none"  # the value that omits this part of the items
EVERY = "*"
DEFAULT_LIMIT, MAX_LIMIT = 20, 500
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_FIELD = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*){0,3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Feed:
    """Settings for one feed.

    - `parameters`: query parameters, as nested dictionaries.
    - `item`: maps keys from ITEM_KEYS to the attributes that provide their values.
    """

    types: tuple[str, ...]
    title: str = ""
    description: str = ""
    link: str = ""
    url: str = ""
    locales: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    limit: int = DEFAULT_LIMIT
    item: Mapping[str, str] = field(default_factory=dict)
    line: int | None = None


def read_feed(file: ConfigFile, *key_path: str) -> Feed:
    """Read the settings for one feed. Raises SetupError if they are invalid."""
    if not _NAME.fullmatch(key_path[-1]):
        what = f'"{key_path[-1]}" is not a valid name for a feed'
        raise file.refuse_key(what, 'use only letters, digits, "-" and "_"', *key_path)
    _refuse_unknown(file, FEED_KEYS, *key_path)
    types = values.text_or_texts(file, (), *key_path, "type")
    if not types:
        raise file.refuse(
            f"{'.'.join(key_path)}.type is missing", "add a line such as type: article", *key_path
        )
    link, url = (_link(file, *key_path, key) for key in ("link", "url"))
    parameters = {
        key: values.to_query_parameter(file.get(*key_path, key))
        for key in ("filters", "sort")
        if not is_null(file.get(*key_path, key))
    }
    if "sort" in parameters and len(types) > 1:
        what = f"{'.'.join(key_path)}.sort can't be used with more than one type"
        raise file.refuse(what, "remove sort: by default, the newest documents come first", *key_path, "sort")
    limit = values.read_count(file, DEFAULT_LIMIT, *key_path, "limit")
    if limit > MAX_LIMIT:
        raise file.refuse_value(f"not be greater than {MAX_LIMIT}", "", *key_path, "limit")
    position = file.position(*key_path)
    return Feed(
        types,
        values.text(file, "", *key_path, "title"),
        values.text(file, "", *key_path, "description"),
        link,
        url,
        values.text_or_texts(file, (), *key_path, "locale"),
        parameters,
        limit,
        _item(file, *key_path, "item"),
        position.line if position else None,
    )


def _refuse_unknown(file: ConfigFile, known: Mapping[str, str], *key_path: str) -> None:
    for key in values.read_section(file, *key_path):
        if key not in known:
            fix = suggestion(str(key), known) or "use one of " + ", ".join(known)
            raise file.refuse_key(f'unknown key "{".".join((*key_path, str(key)))}"', fix, *key_path, key)


def _link(file: ConfigFile, *key_path: str) -> str:
    link = values.text(file, "", *key_path)
    if link and (not _URL.fullmatch(link) or _PLACEHOLDER.search(link)):
        raise file.refuse_value("be a URL", "write a URL such as https://example.org", *key_path)
    return link


def _item(file: ConfigFile, *key_path: str) -> Mapping[str, str]:
    _refuse_unknown(file, ITEM_KEYS, *key_path)
    item = {}
    for key in values.read_section(file, *key_path):
        name = values.text(file, "", *key_path, key)
        if not _FIELD.fullmatch(name):
            fix = "write a name such as summary or author.name, or none to leave it out"
            raise file.refuse_value("be the name of an attribute", fix, *key_path, key)
        item[key] = name
    return item


# --- redirects ------------------------------------------------------------------------------------

# The formats of redirects, with their files in an export (docs/redirects.md).
REDIRECT_FILES: Mapping[str, str] = {
    "netlify": "_redirects",
    "cloudflare-pages": "_redirects",
    "nginx": "redirects.conf",
    "cloudflare": "redirects.csv",
    "json": "redirects.json",
    "htaccess": ".htaccess",
}


def read_redirect_formats(file: ConfigFile, default: tuple[str, ...], *key_path: str) -> tuple[str, ...]:
    """Read the formats in which redirects are exported.

    Raises SetupError if a format is unknown, or if two formats would write the same file.
    """
    formats = values.text_or_texts(file, default, *key_path)
    written: dict[str, str] = {}
    for i, format_ in enumerate(formats):
        if format_ not in REDIRECT_FILES:
            fix = suggestion(format_, REDIRECT_FILES) or "use one of " + ", ".join(REDIRECT_FILES)
            raise file.refuse(f'unknown format "{format_}" in {".".join(key_path)}', fix, *key_path, i)
        name = REDIRECT_FILES[format_]
        if name in written:
            dotted, other = ".".join(key_path), written[name]
            what = f"{dotted} contains {other} and {format_}, which both write the file {name}"
            raise file.refuse(what, "keep one of them", *key_path, i)
        written[name] = format_
    return formats


# --- names that the schema does not contain -------------------------------------------------------

# an error: a message, a fix, and the path of keys in site.yaml
OddName = tuple[str, str, KeyPath]


def check_url_names(
    urls: Mapping[str, PublicUrl], schema: Schema, locales: tuple[str, ...]
) -> Iterator[OddName]:
    """Yield a problem for each unknown content type, locale or placeholder in `urls`."""
    for name, url in urls.items():
        if name == MEDIA_URL:
            continue
        type_ = schema.subjects.get(name)
        if type_ is None:
            yield unknown_type(name, schema, "urls", ("urls", name))
            continue
        for locale in url.patterns:
            if locale != EVERY_LOCALE and locale not in locales:
                fix = suggestion(locale, locales) or "use one of " + ", ".join(locales)
                yield f'unknown locale "{locale}" in urls.{name}', fix, ("urls", name, locale)
        known = _known_placeholders(type_)
        for placeholder in url.placeholders:
            if placeholder not in known:
                fix = suggestion(placeholder, known) or "use one of " + ", ".join(known)
                yield f'unknown placeholder "{{{placeholder}}}" in urls.{name}', fix, ("urls", name)


def check_feed_names(
    feeds: Mapping[str, Feed], urls: Mapping[str, PublicUrl], schema: Schema, locales: tuple[str, ...]
) -> Iterator[OddName]:
    """Yield a problem for each unknown name in `feeds`.

    Also yield a problem for each content type that a feed uses but that is missing from `urls`.
    """
    for name, feed in feeds.items():
        for i, locale in enumerate(feed.locales):
            if locale not in (*locales, EVERY):
                fix = suggestion(locale, locales) or "use one of " + ", ".join(locales)
                yield f'unknown locale "{locale}" in feeds.{name}', fix, ("feeds", name, "locale", i)
        for i, subject in enumerate(feed.types):
            at: KeyPath = ("feeds", name, "type", i)
            type_ = schema.subjects.get(subject)
            if type_ is None:
                yield unknown_type(subject, schema, f"feeds.{name}", at)
                continue
            if subject not in urls:
                what = f"feeds.{name} is empty for {subject}, because urls.{subject} is missing"
                yield what, f"add urls.{subject}, such as https://example.org/{{slug}}", at
            for key, path in feed.item.items():
                if path != NO_FIELD and path.partition(".")[0] not in type_.columns:
                    what = f'{subject} has no attribute "{path}", which feeds.{name}.item.{key} names'
                    yield what, suggestion(path, type_.columns), ("feeds", name, "item", key)


def unknown_type(name: str, schema: Schema, where: str, key_path: KeyPath) -> OddName:
    fix = suggestion(name, schema.subjects) or "use the singular API id of a content type"
    return f'unknown content type "{name}" in {where}', fix, key_path


def at_line(feed: Feed, what: str) -> SetupError:
    return SetupError(SETTINGS, feed.line, what)
