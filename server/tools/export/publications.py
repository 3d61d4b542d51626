"""Feeds and sitemaps in an export, with the same bytes as a server's responses."""

from collections.abc import Iterator

from server.config.model import FILE
from server.errors import ApiError, NotFoundError, SetupError
from server.service.publishing.feeds import feed_texts, is_public
from server.service.publishing.public_reader import PublicSite
from server.service.publishing.sitemap import sitemaps
from server.tools.export.response import Response


def publications(site: PublicSite) -> Iterator[Response]:
    """Yield all feeds and sitemaps. Raises SetupError if the settings of a feed are invalid."""
    for name, feed in site.state.settings.feeds.items():
        if not is_public(feed, site):
            continue
        try:
            texts = feed_texts(site, name)
        except ApiError as error:
            what = f"feeds.{name} can't be exported: {error.message}"
            raise SetupError(FILE, feed.line, what) from error
        for extension, (_, text) in texts.items():
            path = f"feeds/{name}.{extension}"
            yield Response(path, f"/{path}", text.encode())
    try:
        for path, text in sitemaps(site).items():
            yield Response(path, f"/{path}", text.encode())
    except NotFoundError:  # The site has no public URLs.
        return
