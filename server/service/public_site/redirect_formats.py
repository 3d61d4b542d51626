"""Redirects in the configuration formats of web servers (docs/redirects.md).

Paths are percent-encoded, so they contain no spaces, quotes, semicolons or line breaks.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from server.documents.addresses import origin_of
from server.service.public_site.redirects import STATUS, Redirect

# Longer rules are ignored (https://developers.cloudflare.com/pages/configuration/redirects/).
_MAX_PAGES_RULE_CHARS = 1000
# nginx (1.22) stores the length of a location in one byte. A longer location also breaks other locations.
_MAX_NGINX_LOCATION_BYTES = 255
# nginx reads parameters of up to 4,096 bytes, with their quotes and variables.
_MAX_NGINX_TARGET_CHARS = 4000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd]")


class RedirectFormat(NamedTuple):
    """A configuration format. `write` returns the text, and the redirects that the format can't express.

    If `several_hosts` is set, one file can contain redirects for several hosts.
    """

    several_hosts: bool
    write: Callable[[Iterable[Redirect]], tuple[str, list[Redirect]]]


def _split_source(redirect: Redirect) -> tuple[str, str]:
    path, _, query = redirect.source.partition("?")
    return path, query


def _decode_path(path: str) -> str | None:
    try:
        text = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _encoded(target: str) -> str:
    scheme, colon, rest = target.partition("://")
    for character in "$'();,*!":
        rest = rest.replace(character, f"%{ord(character):02X}")
    return scheme + colon + rest


def _lines(
    redirects: Iterable[Redirect], line: Callable[[Redirect], str | None]
) -> tuple[list[str], list[Redirect]]:
    written, left = [], []
    for redirect in redirects:
        text = line(redirect)
        if text is None:
            left.append(redirect)
        else:
            written.append(text)
    return written, left


# --- hosts ----------------------------------------------------------------------------------------


def _rule_target(redirect: Redirect) -> str:
    target = _encoded(redirect.target)
    if origin_of(redirect.target) != redirect.origin:
        return target
    # Encode colons, because they would begin placeholders.
    return (target[len(redirect.origin) :] or "/").replace(":", "%3A")


def _netlify(redirects: Iterable[Redirect]) -> tuple[str, list[Redirect]]:
    def line(redirect: Redirect) -> str:
        path, query = _split_source(redirect)
        target = _rule_target(redirect)
        parameters = " ".join(part for part in query.split("&") if part)
        return f"{path} {parameters + ' ' if parameters else ''}{target} {STATUS}"

    # The first matching rule wins, so rules with parameters come first.
    ordered = sorted(redirects, key=lambda redirect: ("?" not in redirect.source, redirect.source))
    lines, left = _lines(ordered, line)
    return "".join(f"{text}\n" for text in lines), left


def _cloudflare_pages(redirects: Iterable[Redirect]) -> tuple[str, list[Redirect]]:
    def line(redirect: Redirect) -> str | None:
        path, query = _split_source(redirect)
        # Rules can't match query strings. Unlike on Netlify, a rule without a trailing slash does not match a
        # path with one.
        variants = [path] if path == "/" else [path, f"{path}/"]
        rules = [f"{variant} {_rule_target(redirect)} {STATUS}" for variant in variants]
        return "\n".join(rules) if not query and len(rules[-1]) <= _MAX_PAGES_RULE_CHARS else None

    lines, left = _lines(redirects, line)
    return "".join(f"{text}\n" for text in lines), left


def _cloudflare(redirects: Iterable[Redirect]) -> tuple[str, list[Redirect]]:
    def line(redirect: Redirect) -> str | None:
        if "?" in redirect.source or urlsplit(redirect.origin).port:
            return None  # Bulk Redirects match neither query strings nor ports
        return f"{redirect.origin}{redirect.source},{_encoded(redirect.target)},{STATUS}"

    lines, left = _lines(redirects, line)
    return "".join(f"{text}\n" for text in lines), left


def _json(redirects: Iterable[Redirect]) -> tuple[str, list[Redirect]]:
    lines = ",\n".join(json.dumps(redirect.as_json(), ensure_ascii=False) for redirect in redirects)
    return f"[\n{lines}\n]\n" if lines else "[]\n", []


# --- nginx ----------------------------------------------------------------------------------------


# If a redirect's source has a query string, the path without it can be the address of a page. A `location`
# would also match that page, so such a source is compared with the whole address instead.
_NGINX_ADDRESS = 'set $bifolio_address "$uri?$args";\n'


def _nginx(redirects: Iterable[Redirect]) -> tuple[str, list[Redirect]]:
    blocks: list[str] = []
    conditions: list[str] = []
    left: list[Redirect] = []
    # Sort by path and query, because in the order of the whole text, "/a/b" is between "/a" and "/a?x=1".
    for path, group in groupby(sorted(redirects, key=_split_source), key=lambda one: _split_source(one)[0]):
        found = list(group)
        locations = _nginx_locations(path)
        readable = [
            one for one in found if locations and len(_encoded(one.target)) <= _MAX_NGINX_TARGET_CHARS
        ]
        if all("?" in one.source for one in readable):
            if "$" in "".join(locations):  # nginx would interpret "$" as the start of a variable.
                readable = []
            conditions += [_nginx_condition(one, path) for one in readable for path in locations]
        else:
            rules = " ".join(_nginx_rules(readable))
            blocks += [f"location = {_nginx_quoted(one)} {{ {rules} }}\n" for one in locations]
        left += [one for one in found if one not in readable]
    return "".join([_NGINX_ADDRESS] * bool(conditions) + conditions + blocks), left


def _nginx_condition(redirect: Redirect, path: str) -> str:
    address = _nginx_quoted(f"{path}?{_split_source(redirect)[1]}")
    return f'if ($bifolio_address = {address}) {{ return {STATUS} "{_encoded(redirect.target)}"; }}\n'


def _nginx_locations(path: str) -> tuple[str, ...]:
    decoded = _decode_path(path)
    if decoded is None or len(decoded.encode()) + 1 > _MAX_NGINX_LOCATION_BYTES:
        return ()
    return (decoded,) if decoded == "/" else (decoded, decoded + "/")


def _nginx_rules(redirects: Iterable[Redirect]) -> Iterator[str]:
    last = ""
    for redirect in redirects:
        query, target = _split_source(redirect)[1], _encoded(redirect.target)
        if query:
            yield f'if ($args = "{query}") {{ return {STATUS} "{target}"; }}'
        else:
            passed = "" if "?" in target else "$is_args$args"
            last = f'return {STATUS} "{target}{passed}";'
    yield last


def _nginx_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- Apache ---------------------------------------------------------------------------------------


def _htaccess(redirects: Iterable[Redirect]) -> tuple[str, list[Redirect]]:
    def line(redirect: Redirect) -> str | None:
        path, query = _split_source(redirect)
        decoded = _decode_path(path)
        if decoded is None:
            return None
        # In .htaccess, paths are matched without the leading slash.
        pattern = f"^{_apache_pattern(decoded.removeprefix('/'))}/?$"
        target = _encoded(redirect.target).replace("%", "\\%")
        flags = f"R={STATUS},L,NE" + (",QSD" if query else "")
        condition = f'RewriteCond %{{QUERY_STRING}} "^{_apache_pattern(query)}$"\n' if query else ""
        return f'{condition}RewriteRule "{pattern}" "{target}" [{flags}]'

    ordered = sorted(redirects, key=lambda redirect: ("?" not in redirect.source, redirect.source))
    lines, left = _lines(ordered, line)
    return "RewriteEngine On\n" + "".join(f"{text}\n" for text in lines), left


def _apache_pattern(text: str) -> str:
    # mod_rewrite does not support escaped quotes, so they are written as \x22.
    return re.sub(r"[!-,.:-@\[-^`{-~]", lambda found: "\\" + found[0], text).replace('\\"', "\\x22")


# keyed by the names in REDIRECT_FILES
FORMATS: Mapping[str, RedirectFormat] = {
    "netlify": RedirectFormat(False, _netlify),
    "cloudflare-pages": RedirectFormat(False, _cloudflare_pages),
    "nginx": RedirectFormat(False, _nginx),
    "cloudflare": RedirectFormat(True, _cloudflare),
    "json": RedirectFormat(True, _json),
    "htaccess": RedirectFormat(False, _htaccess),
}
