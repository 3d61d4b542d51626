"""Properties of a request, read from its WSGI environ without Flask."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from server.config.model import ResponseFormat, Settings
from server.errors import ValidationError
from server.query import qs

_WITH_PORT = re.compile(r"\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5}", re.ASCII)
FORMAT = "Strapi-Response-Format"  # the request header that selects the format of Strapi 4
# Keys in the WSGI environ: the state that the request reads, and its budget.
STATE, BUDGET = "bifolio.state", "bifolio.budget"
COMMIT = "bifolio.commit"  # the AnsweredCommit, if the request reads a past state
REFUSED = "bifolio.refused"  # an error raised while the body was received
# Set by the HTTP server: the thread must not wait; the request was postponed as costly; a function that
# returns whether the client has disconnected.
IN_PLACE, COSTLY, GONE = "bifolio.in_place", "bifolio.costly", "bifolio.gone"
ON_LOOP = "bifolio.on_loop"  # the event loop runs the request, so other requests wait for it
NO_TURN = "bifolio.no_turn"  # refused because too many requests wait for a turn
ACCOUNTS = "bifolio.accounts"  # may have to wait for a database of accounts
# The hub of event streams; the address and port of the connection's other end.
STREAMS, CLIENT = "bifolio.streams", "bifolio.client"
COOKIE_USED = "bifolio.cookie_used"  # the credentials came in the studio's cookie
IDENTITIES = "bifolio.identities"  # the Identities that authenticate the request
ADMITTED = "bifolio.admitted"  # the result of the rate limit, so that a request is counted once


def parse_query(raw: str) -> dict[str, object]:
    """Parse a WSGI query string into nested values. Raises ValidationError."""
    try:
        return qs.parse(raw if raw.isascii() else raw.encode("latin-1").decode())
    except UnicodeError as error:
        raise ValidationError("The query is not UTF-8") from error


def wsgi_text(raw: str) -> str:
    """Decode part of a WSGI path, in which each character stands for a byte."""
    return raw if raw.isascii() else raw.encode("latin-1").decode(errors="replace")


def believe_proxies(environ: dict[str, Any], trusted: tuple[str, ...]) -> None:
    """Set the client's address and scheme in the environ from the headers of trusted proxies.

    The address is the last one in X-Forwarded-For that is not a trusted proxy. A client may have forged all
    addresses before it.
    """
    address = environ.get("REMOTE_ADDR", "")
    if not _is_in(address, trusted):
        return
    for hop in reversed(environ.get("HTTP_X_FORWARDED_FOR", "").split(",")):
        named = _without_port(hop.strip())
        if _address(named) is None:
            break
        address = named
        if not _is_in(address, trusted):
            break
    environ["REMOTE_ADDR"] = address
    if environ.get("HTTP_X_FORWARDED_PROTO", "").rpartition(",")[2].strip().lower() == "https":
        environ["wsgi.url_scheme"] = "https"


def _without_port(hop: str) -> str:
    """Return a hop's address without a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`."""
    found = _WITH_PORT.fullmatch(hop)
    return found[1] or found[2] if found else hop


# Saves 39 µs of 92 of a read that a trusted proxy passes on.
@lru_cache(maxsize=1024)
def _is_in(address: str, networks: tuple[str, ...]) -> bool:
    found = _address(address)
    return found is not None and any(found in ip_network(network) for network in networks)


def is_loopback(host: str) -> bool:
    """Whether a name or address can be reached only from this machine."""
    found = _address(host)
    return host == "localhost" or (found is not None and found.is_loopback)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address, with an IPv4-mapped IPv6 address as IPv4; None if it is not an address."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def response_format_of(environ: Mapping[str, Any], settings: Settings) -> ResponseFormat:
    """Return the response format that a request selects, else the site's (spec.md 4.4, 9)."""
    asked = environ.get("HTTP_STRAPI_RESPONSE_FORMAT")
    if asked is None:
        return settings.api.format
    return ResponseFormat.V4 if str(asked).lower() == "v4" else ResponseFormat.V5
