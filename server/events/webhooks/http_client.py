"""HTTP client for webhooks, which signs requests and checks the receiver's IP address."""

import hmac
import io
import logging
import secrets
import socket
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from server import __version__
from server.config.webhooks import SECRET_PREFIX, Webhook, address_of, is_allowed_host

log = logging.getLogger("bifolio")

# --- signing --------------------------------------------------------------------------------------

SECRET_BYTES = 32  # size of new secrets


def new_secret() -> str:
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def new_id() -> str:
    return f"msg_{secrets.token_urlsafe(18)}"


def signature(secret: str, webhook_id: str, timestamp_s: int, body: bytes) -> str:
    key = b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{webhook_id}.{timestamp_s}.".encode() + body
    return "v1," + b64encode(hmac.digest(key, signed, "sha256")).decode()


def sign(secrets: Iterable[str], webhook_id: str, timestamp_s: int, body: bytes) -> Mapping[str, str]:
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(signature(secret, webhook_id, timestamp_s, body) for secret in secrets),
    }


# --- addresses ------------------------------------------------------------------------------------

Address = IPv4Address | IPv6Address
_NAT64 = ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ip_network("2000::/3")  # the only IPv6 block of public networks
# Forbidden blocks, from IANA's registries of special-purpose and multicast addresses as of 2025. Python's
# `is_global` depends on the Python version and allows some of them.
_RESERVED = tuple(
    ip_network(block)
    for block in (
        "0.0.0.0/8",  # reserved as "this network"
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by network providers; a cloud's metadata service
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # not in a registry: the host of a virtual machine on Azure
        "169.254.0.0/16",  # link-local; metadata service of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocols; a cloud's metadata service
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocols
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: the embedded IPv4 address is checked instead
        "3fff::/20",  # documentation
    )
)


class RefusedAddress(OSError):
    """Raised if a host has only private IP addresses, and these are not allowed."""


def connect(host: str, port: int, private_hosts: Collection[str], deadline: float) -> socket.socket:
    """Connect to a host. Private IP addresses are used only if `private_hosts` contains the host.

    `deadline` is a time on the monotonic clock. Raises RefusedAddress, or another OSError if the connection
    fails.
    """
    addresses = _lookup(host, port, deadline)
    if not is_allowed_host(private_hosts, host, port):
        public = [address for address in addresses if is_public(ip_address(address.partition("%")[0]))]
        if not public:
            # The error is part of responses. With the address, callers could explore the private network.
            if host not in addresses:
                log.warning("the host %s has the private IP address %s", host, addresses[0])
            raise RefusedAddress(
                f"{host} is not a public address; to allow it, add it to webhooks_allow in site.yaml"
            )
        addresses = public
    last_error: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=seconds_left(deadline))
        except OSError as error:
            last_error = error
    raise last_error or OSError("no address")


def seconds_left(deadline: float) -> float:
    """Return the seconds left until a deadline on the monotonic clock.

    Raises TimeoutError if it has passed.
    """
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def is_public(address: Address) -> bool:
    """Return whether an IP address is public. If it embeds IPv4 addresses, only these are checked."""
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner:
            return all(map(is_public, inner))
        if address not in _GLOBAL_UNICAST:
            return False
    return not any(address in block for block in _RESERVED)


def _inner(address: IPv6Address) -> list[IPv4Address]:
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    if address.sixtofour:
        return [address.sixtofour]
    return list(address.teredo or ())


def _lookup(host: str, port: int, deadline: float) -> list[str]:
    # A lookup that hangs can't be cancelled, so it runs in a thread.
    with suppress(ValueError):
        return [str(ip_address(host))]
    addresses: list[str] = []
    errors: list[Exception] = []

    def resolve() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses.extend(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except (OSError, UnicodeError) as error:
            errors.append(error)

    thread = threading.Thread(target=resolve, name="resolver", daemon=True)
    thread.start()
    thread.join(seconds_left(deadline))
    if errors:
        raise OSError(f"the host name {host} can't be resolved: {errors[0]}") from errors[0]
    if not addresses:
        raise TimeoutError
    return addresses


# --- http client ----------------------------------------------------------------------------------

TIMEOUT_S = 15.0
MAX_RESPONSE_BYTES = 65_536  # the rest is not read
MAX_EXCERPT_CHARS, MAX_BRIEF_CHARS = 1000, 160  # limits for a stored error and for a line in the log
MAX_RESPONSE_CHARS = 4000  # limit for a stored response


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request.

    `status` is 0 if there was no response. `response` is the beginning of the response's body.
    """

    status: int
    error: str = ""
    retry_after: float | None = None
    seconds: float = 0.0
    response: str = ""

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


def send(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    allowed: Collection[str] = (),
    timeout: float = TIMEOUT_S,
    mask: Callable[[str], str] = str,
) -> Outcome:
    """Send a POST request without following redirects. Network errors are part of the outcome, not raised.

    `allowed` contains the hosts whose private addresses may be used. `mask` removes secrets from errors and
    responses.
    """
    began = time.monotonic()
    try:
        outcome = _exchange(url, headers, body, allowed, began + timeout)
    except TimeoutError:
        outcome = Outcome(0, f"no response within {timeout:g} s")
    except ssl.SSLCertVerificationError as error:
        outcome = Outcome(0, f"the certificate can't be trusted: {error.verify_message}")
    except (OSError, HTTPException, ValueError) as error:
        outcome = Outcome(0, _reason_of(error))
    message = _on_one_line(mask(outcome.error))
    response = _printable(mask(outcome.response))[:MAX_RESPONSE_CHARS]
    return Outcome(outcome.status, message, outcome.retry_after, time.monotonic() - began, response)


def _on_one_line(text: str) -> str:
    return " ".join(_printable(text).split())[:MAX_EXCERPT_CHARS]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _reason_of(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"the response is not HTTP: {reason}" if isinstance(error, HTTPException) else reason


def brief(error: str) -> str:
    return error if len(error) <= MAX_BRIEF_CHARS else f"{error[:MAX_BRIEF_CHARS]}…"


def _exchange(
    url: str, headers: Mapping[str, str], body: bytes, allowed: Collection[str], deadline: float
) -> Outcome:
    with connected("POST", url, allowed, deadline) as connection:
        for name, value in {**headers, "Content-Length": str(len(body)), "Connection": "close"}.items():
            connection.putheader(name, value)
        # The receiver may respond before it has read the whole body.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.endheaders(body)
        return _read(connection.getresponse(), url)


@contextmanager
def connected(method: str, url: str, allowed: Collection[str], deadline: float) -> Iterator[HTTPConnection]:
    """Connect to the server of a URL, and yield a connection to which headers can be written.

    Raises the same errors as `connect`.
    """
    parts, (host, port) = urlsplit(url), address_of(url)
    with connect(host, port, allowed, deadline) as plain:
        channel = _encrypt(plain, host, deadline) if parts.scheme == "https" else plain
        with channel:
            connection = HTTPConnection(host, port)
            connection.sock = cast(socket.socket, _Channel(channel, deadline))
            connection.putrequest(method, _target(url), skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", parts.netloc)
            yield connection


def _encrypt(plain: socket.socket, host: str, deadline: float) -> ssl.SSLSocket:
    plain.settimeout(seconds_left(deadline))
    return _context().wrap_socket(plain, server_hostname=host)


# Saves the 50 ms per delivery over TLS that reading the system's certificates takes.
@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _read(response: HTTPResponse, url: str) -> Outcome:
    # Errors while reading the response body do not matter.
    text = b""
    with suppress(OSError, HTTPException, ValueError):
        text = response.read(MAX_RESPONSE_BYTES)
    status = response.status
    shown = text[: 4 * MAX_RESPONSE_CHARS].decode("utf-8", "replace").strip()
    if 200 <= status < 300:
        return Outcome(status, response=shown)
    status_line = f"{status} {response.reason}".strip()
    if 300 <= status < 400:
        status_line += f", a redirect to {response.getheader('Location', 'nowhere')}, which is not followed"
    excerpt = text[: 4 * MAX_EXCERPT_CHARS].decode("utf-8", "replace").strip()
    error = f"{status_line}: {excerpt}" if excerpt else status_line
    return Outcome(status, error, _seconds(response.getheader("Retry-After")), response=shown)


def _seconds(retry_after: str | None) -> float | None:
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


class _Channel:
    """Socket wrapper for http.client. All operations on the socket have the same deadline."""

    def __init__(self, channel: socket.socket, deadline: float) -> None:
        self._channel, self._deadline = channel, deadline

    def sendall(self, data: bytes) -> None:
        self._channel.settimeout(seconds_left(self._deadline))
        self._channel.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self._channel, self._deadline))

    def close(self) -> None: ...


class _DeadlineReader(io.RawIOBase):
    def __init__(self, channel: socket.socket, deadline: float) -> None:
        self._channel, self._deadline = channel, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._channel.settimeout(seconds_left(self._deadline))
        return self._channel.recv_into(buffer)


# --- posting --------------------------------------------------------------------------------------


def post(
    webhook: Webhook,
    secrets: Collection[str],
    webhook_id: str,
    event: str,
    body: bytes,
    signed_at: float,
    allowed: Collection[str],
    timeout: float = TIMEOUT_S,
) -> Outcome:
    """Send a signed delivery to a webhook, whose environment variables must already be resolved."""
    headers = {
        **webhook.headers,
        "Content-Type": "application/json",
        "User-Agent": f"Bifolio/{__version__}",
        "X-Strapi-Event": event,
        **sign(secrets, webhook_id, int(signed_at), body),
    }
    hidden = _secrets_in(webhook, secrets)
    return send(webhook.url, headers, body, allowed, timeout, lambda text: _masked(text, hidden))


MASK = "•••"
_MIN_SECRET_CHARS = 8  # Shorter values are not masked, because they also occur in other words.
_MIN_SEGMENT_CHARS = 16  # of a URL's path


def _secrets_in(webhook: Webhook, secrets: Iterable[str]) -> list[str]:
    """Return the secrets that a receiver could repeat in its response, longest first."""
    parts = urlsplit(webhook.url)
    values = {*secrets, *webhook.headers.values(), *(value for _, value in parse_qsl(parts.query))}
    words = {word for value in values for word in (value, *value.split())}
    segments = {segment for segment in parts.path.split("/") if len(segment) >= _MIN_SEGMENT_CHARS}
    found = {word for word in words if len(word) >= _MIN_SECRET_CHARS} | segments
    return sorted(found, key=len, reverse=True)


def _masked(text: str, hidden: Iterable[str]) -> str:
    for value in hidden:
        text = text.replace(value, MASK)
    return text
