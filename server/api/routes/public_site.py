"""Handlers for feeds, sitemaps, `/llms.txt` and redirects."""

from collections.abc import Callable
from functools import partial

from flask import Response, request

from server.api.request import answer, budget_of, caller_of, state_of, with_cache_tags
from server.api.response import PRIVATE_REVALIDATE, PUBLIC_REVALIDATE
from server.api.response_cache import StateCache
from server.api.routes.handlers import Handlers
from server.auth.permissions import may_find
from server.errors import NotFoundError
from server.service.cache_tags import tags_of_types
from server.service.public_site import llms
from server.service.public_site.feeds import FORMATS, feed_text
from server.service.public_site.public_reader import PublicSite
from server.service.public_site.redirects import Redirects
from server.service.public_site.sitemap import MEDIA_TYPE, NAME, sitemaps

MAX_CACHE_BYTES = 128 * 1024 * 1024
_ENTRY_BYTES = 500

Texts = dict[str, tuple[str, bytes]]  # media types and bodies, by file name


def bind(handles: Handlers, redirects: Redirects) -> None:
    """Register the handlers."""
    # The cache saves 2 ms for a feed of 20 documents, and 30 ms for a sitemap of 10,000 documents.
    cache: StateCache[str, Texts] = StateCache(MAX_CACHE_BYTES, _size)

    def cached(key: str, make: Callable[[PublicSite], Texts]) -> Texts:
        state = state_of(request)
        texts = cache.for_state(state).get(key)
        if texts is None:
            budget_of(request).take_turn()
            texts = cache.for_state(state).get(key)
        if texts is None:
            texts = make(PublicSite(state, budget_of(request)))
            cache.for_state(state).put(key, texts)
        return texts

    def send(texts: Texts, name: str) -> Response:
        if name not in texts:
            raise NotFoundError()
        kind, body = texts[name]
        response = Response(body, headers={"Cache-Control": PUBLIC_REVALIDATE}, content_type=kind)
        state = state_of(request)
        # The content of other types is not used. Their tags would reveal that they exist.
        public = PublicSite(state).actor
        uids = [type_.uid for type_ in state.schema.content_types if may_find(public, type_.uid)]
        return with_cache_tags(response, request, tags_of_types(uids, state.schema))

    @handles("feed")
    def feed(name: str, format: str) -> Response:
        if name not in state_of(request).settings.feeds or format not in FORMATS:
            raise NotFoundError()
        return send(cached(f"feed {name}.{format}", partial(_feed, name, format)), format)

    @handles("sitemap")
    def sitemap() -> Response:
        return send(cached(NAME, _sitemaps), NAME)

    @handles("sitemapPart")
    def part(number: str) -> Response:
        return send(cached(NAME, _sitemaps), f"sitemap-{number}.xml")

    @handles("llms")
    def overview() -> Response:
        return send(cached(llms.NAME, _llms), llms.NAME)

    @handles("redirects")
    def listed() -> Response:
        body = redirects.list_redirects(caller_of(request)).body
        budget_of(request).write(len(body))
        return answer(body, cache_control=PRIVATE_REVALIDATE)


def _feed(name: str, extension: str, site: PublicSite) -> Texts:
    text = feed_text(site, name, extension)
    return {extension: (FORMATS[extension].media_type, text.encode())}


def _sitemaps(site: PublicSite) -> Texts:
    return {name: (MEDIA_TYPE, text) for name, text in sitemaps(site).items()}


def _llms(site: PublicSite) -> Texts:
    return {llms.NAME: (llms.MEDIA_TYPE, llms.llms_text(site.state, site.budget))}


def _size(key: str, texts: Texts) -> int:
    return len(key) + sum(len(body) + _ENTRY_BYTES for _, body in texts.values())
