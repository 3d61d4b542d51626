"""Where a webhook may lead: a name is resolved once, and what was looked at is what is connected to.

So nobody who may write site.yaml, or answers for a name, can reach what only this machine and its
neighbours can: databases, metadata services of clouds, the server itself.
"""

import socket
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address
_NAT64 = ip_network("64:ff9b::/96")


class RefusedAddress(OSError):
    """A host has no address that a webhook may connect to."""


def connect(host: str, port: int, allowed: Collection[str], deadline: float) -> socket.socket:
    """A connection to the first address of a host that may be reached, and that answers.

    `allowed` are the hosts whose addresses may be private, `deadline` is by the monotonic clock. Raises
    RefusedAddress, and OSError.
    """
    addresses = _lookup(host, port, deadline)
    if host not in allowed:
        public = [address for address in addresses if is_public(ip_address(address.partition("%")[0]))]
        if not public:
            at = "" if addresses[0] == host else f"at {addresses[0]}, which is "
            raise RefusedAddress(f"{host} is {at}no public address; webhooks_allow can allow it")
        addresses = public
    failed: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=left(deadline))
        except OSError as error:
            failed = error
    raise failed or OSError("no address")


def left(deadline: float) -> float:
    """The seconds until a deadline. Raises TimeoutError where it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet; one that stands for another is what that is."""
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner:
            return all(map(is_public, inner))
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inner(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for."""
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    if address.sixtofour:
        return [address.sixtofour]
    return list(address.teredo or ())


def _lookup(host: str, port: int, deadline: float) -> list[str]:
    """The addresses of a host, by a thread of its own: nothing else ends a resolver that nobody answers."""
    with suppress(ValueError):
        return [str(ip_address(host))]
    found: list[str] = []
    failed: list[Exception] = []

    def resolve() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend(dict.fromkeys(str(answer[4][0]) for answer in answers))
        except (OSError, UnicodeError) as error:
            failed.append(error)

    thread = threading.Thread(target=resolve, name="resolver", daemon=True)
    thread.start()
    thread.join(left(deadline))
    if failed:
        raise OSError(f"the name {host} can't be resolved: {failed[0]}") from failed[0]
    if not found:
        raise TimeoutError
    return found
