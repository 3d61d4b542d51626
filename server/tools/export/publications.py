"""Feeds, sitemaps, `llms.txt` and redirects in an export."""

from collections.abc import Iterator
from dataclasses import dataclass

from server.auth.owner import OWNER
from server.config.model import FILE
from server.config.public_site import REDIRECT_FILES
from server.errors import ApiError, NotFoundError, SetupError
from server.service.public_site import llms
from server.service.public_site.feeds import FORMATS as FEED_FORMATS
from server.service.public_site.feeds import feed_text, is_public
from server.service.public_site.public_reader import PublicSite
from server.service.public_site.redirect_formats import FORMATS
from server.service.public_site.redirects import Redirects
from server.service.public_site.sitemap import sitemaps
from server.service.read import Caller
from server.site.site import State
from server.tools.export.response import Response


def publication_files(site: PublicSite) -> Iterator[Response]:
    """Yield the site's public feeds, sitemaps and `llms.txt`.

    Raises SetupError if the settings of a feed are invalid.
    """
    for name, feed in site.state.settings.feeds.items():
        if not is_public(feed, site):
            continue
        try:
            texts = {extension: feed_text(site, name, extension) for extension in FEED_FORMATS}
        except ApiError as error:
            what = f"feeds.{name} can't be exported: {error.message}"
            raise SetupError(FILE, feed.line, what) from error
        for extension, text in texts.items():
            path = f"feeds/{name}.{extension}"
            yield Response(path, f"/{path}", text.encode())
    if site.state.settings.llms.enabled:
        yield Response(llms.NAME, f"/{llms.NAME}", llms.llms_text(site.state))
    try:
        for path, body in sitemaps(site).items():
            yield Response(path, f"/{path}", body)
    except NotFoundError:  # No content type has public URLs.
        return


@dataclass(frozen=True, slots=True)
class RedirectFiles:
    """Redirect files for static hosts, and the numbers of redirects and aliases that were left out."""

    files: tuple[Response, ...] = ()
    unsupported_count: int = 0
    invalid_alias_count: int = 0


def redirect_files(state: State, redirects: Redirects) -> RedirectFiles:
    """Return the redirect files in the formats that the setting `export.redirects` lists.

    Raises SetupError if the site has redirects for several hosts, but a format supports only one host.
    """
    format_names = state.settings.export.redirects
    if not format_names:
        return RedirectFiles()
    found = redirects.list_redirects(Caller(state, OWNER))
    files, unsupported = [], 0
    for name in format_names:
        if not FORMATS[name].several_hosts and len(found.origins) > 1:
            what = f"export.redirects: the format {name} can't contain redirects for several hosts"
            several = ", ".join(key for key, format_ in FORMATS.items() if format_.several_hosts)
            fix = f"use one of {several}, or run `bifolio redirects --origin URL` for each host"
            raise SetupError(FILE, None, what, fix)
        text, unwritten = FORMATS[name].write(found.redirects)
        unsupported += len(unwritten)
        files.append(Response(REDIRECT_FILES[name], "", text.encode()))
    return RedirectFiles(tuple(files), unsupported, len(found.problems))
