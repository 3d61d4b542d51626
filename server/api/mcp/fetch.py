"""Downloads of files from the hosts in `mcp.upload_from`."""

import time
from collections.abc import Collection
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

from server import __version__
from server.config.webhooks import DEFAULT_PORTS, is_allowed_host
from server.errors import NotAllowedBySettingError, PayloadTooLargeError, ValidationError
from server.events.webhooks.http_client import connected

MAX_FETCHED_BYTES = 25_000_000
TIMEOUT_S = 20.0
_PIECE_BYTES = 64 * 1024


def fetch(
    url: str, hosts: Collection[str], allowed_private_hosts: Collection[str], max_bytes: int
) -> tuple[bytes, str]:
    """Return the content and media type of the file at a URL. Redirects are not followed.

    Raises NotAllowedBySettingError if the host is not in `hosts`, and PayloadTooLargeError or ValidationError
    if the file can't be fetched.
    """
    host, port = _host_and_port_of(url)
    if not is_allowed_host(hosts, host, port):
        named = ", ".join(sorted(hosts)) or "none"
        raise NotAllowedBySettingError(
            f'Files can\'t be fetched from "{host[:200]}"; the hosts in mcp.upload_from are: {named}'
        )
    try:
        with connected("GET", url, allowed_private_hosts, time.monotonic() + TIMEOUT_S) as connection:
            connection.putheader("User-Agent", f"Bifolio/{__version__}")
            connection.putheader("Connection", "close")
            connection.endheaders()
            response = connection.getresponse()
            if response.status != 200:
                raise ValidationError(f"{host} responded with status {response.status} instead of the file")
            content = _read(response, min(max_bytes, MAX_FETCHED_BYTES))
            return content, response.getheader("Content-Type", "") or ""
    except (OSError, HTTPException, ValueError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ValidationError(f"The file can't be fetched from {host}: {reason}") from error


def _host_and_port_of(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ValidationError('"url" is not a URL') from error
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in DEFAULT_PORTS or not host or not is_plain or "@" in parts.netloc:
        raise ValidationError('"url" must be an address such as https://images.example.org/fog.jpg')
    return host, port or DEFAULT_PORTS[parts.scheme]


def _read(response: HTTPResponse, max_bytes: int) -> bytes:
    content = bytearray()
    while piece := response.read(_PIECE_BYTES):
        content += piece
        if len(content) > max_bytes:
            raise PayloadTooLargeError(f"The file is larger than {max_bytes:,} bytes")
    return bytes(content)
