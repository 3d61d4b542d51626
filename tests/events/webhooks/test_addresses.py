"""Tests that a webhook connects to the address that was checked, and only to public addresses or allowed
hosts.
"""

import socket
import time
from ipaddress import ip_address
from typing import Any

import pytest

from server.config.webhooks import check_url
from server.events.webhooks.http_client import RefusedAddress, connect, is_public, send

NOT_PUBLIC = "not a public address; to allow it, add it to webhooks_allow in site.yaml"
REFUSED = """
127.0.0.1 127.8.9.1 0.0.0.0 10.0.0.1 172.16.5.4 192.168.1.1 169.254.169.254 100.64.0.1 192.0.2.1 198.18.0.1
224.0.0.1 240.0.0.1 255.255.255.255 ::1 :: fe80::1 fe80::1%lo fc00::1 fd12::1 fec0::1 ff02::1 2001:db8::1
::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1
2002:7f00:1::1 2002:a00:1::1 2001:0:7f00:1::1 100::1
192.0.0.192 192.0.0.9 168.63.129.16 192.88.99.1 100.100.100.200 198.51.100.7 203.0.113.7 239.1.2.3
3fff::1 3fff:fff::1 5f00::1 64:ff9b:1::1 64:ff9b::a83f:8110 2001:2::1 2001:10::1 2001:20::1 2001:1ff::1
2002:c058:6301::1 ::ffff:192.0.0.192 100:0:0:1::1 4000::1 fd00:ec2::254 fe00::1
""".split()  # noqa: SIM905
PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::1.1.1.1",
    "2002:101:101::1",
    "168.63.129.17",
    "192.0.1.1",
    "192.88.100.1",
    "198.20.0.1",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2a00:1450::1",
    "3fff:1000::1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(ip_address(address.partition("%")[0]))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_not(address: str) -> None:
    assert is_public(ip_address(address))


def test_a_host_can_be_allowed_with_one_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        port, deadline = server.getsockname()[1], time.monotonic() + 5
        connect("127.0.0.1", port, [f"127.0.0.1:{port}"], deadline).close()
        with pytest.raises(RefusedAddress):
            connect("127.0.0.1", other.getsockname()[1], [f"127.0.0.1:{port}"], deadline)


def test_an_error_does_not_tell_the_address_of_a_name(caplog: pytest.LogCaptureFixture) -> None:
    outcome = send("http://localhost/", {}, b"{}", (), 5)
    assert outcome.error == f"localhost is {NOT_PUBLIC}"
    assert "the host localhost has the private IP address" in caplog.text


def test_the_log_does_not_repeat_an_address_that_is_the_host(caplog: pytest.LogCaptureFixture) -> None:
    outcome = send("http://127.0.0.1/", {}, b"{}", (), 5)
    assert outcome.error == f"127.0.0.1 is {NOT_PUBLIC}"
    assert not caplog.records


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "::1", "0"])
def test_this_machine_is_reached_by_none_of_its_names(host: str) -> None:
    with pytest.raises(
        RefusedAddress, match="is not a public address; to allow it, add it to webhooks_allow"
    ):
        connect(host, 80, (), time.monotonic() + 5)


SPELLED = """
http://0177.0.0.1/ http://0x7f.1/ http://2130706433/ http://127.1/ http://0/ http://017700000001/ http://0x7f000001/
http://00000000000000000177.1/ http://LOCALHOST/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[::1]/
http://[::]/ http://[::127.0.0.1]/ http://[::ffff:0:127.0.0.1]/ http://[0:0:0:0:0:ffff:a9fe:a9fe]/
http://[64:ff9b::7f00:1]/ http://[fe80::1%25lo]/ http://[fe80::1%lo]/ http://127.0.0.1#@example.org/
http://127.0.0.1?@example.org/ http://169.254.169.254/latest/ http://0xa9fea9fe/ http://2852039166/
""".split()  # noqa: SIM905


@pytest.mark.parametrize("url", SPELLED)
def test_no_spelling_of_a_private_address_is_connected_to(url: str) -> None:
    assert check_url(url) == ""
    outcome = send(url, {}, b"{}", (), 5)
    assert outcome.status == 0
    assert "not a public address; to allow it, add it to webhooks_allow in site.yaml" in outcome.error


NO_ADDRESS = """
http://user:pw@example.org/ http://example.org@127.0.0.1/ http://example.org:80@127.0.0.1/ http://127.0.0.1%2f@a.example
http:///x http:// http://127.0.0.1:0/ http://127.0.0.1:99999/ http://[127.0.0.1]/ ftp://a/ file:///etc/passwd gopher://a/
http://127。0。0。1/ http://①②⑦.0.0.1/ http://127.0.0.1\\@a.example/ //a.example javascript:alert(1)
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    "url", [*NO_ADDRESS, "http://a\tb/", "http://a\r\nHost: b/", "http://a b/", "http://a\0/"]
)
def test_what_can_be_read_in_two_ways_is_no_address(url: str) -> None:
    assert check_url(url)


class Names:
    """A fake DNS resolver that returns the given answers in turn, and records the addresses that were
    connected to.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
        self.asked, self.connected = 0, list[str]()
        self._answers = answers
        monkeypatch.setattr(socket, "getaddrinfo", self._resolve)
        monkeypatch.setattr(socket, "create_connection", self._connect)

    def _resolve(self, host: str, port: int, **kind: Any) -> list[Any]:
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answer]

    def _connect(self, address: tuple[str, int], timeout: float) -> socket.socket:
        self.connected.append(address[0])
        raise ConnectionRefusedError("refused")


def test_a_name_that_changes_is_asked_once_and_what_was_looked_at_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    with pytest.raises(ConnectionRefusedError):
        connect("rebind.example", 80, (), time.monotonic() + 5)
    assert (names.asked, names.connected) == (1, ["93.184.216.34"])
    with pytest.raises(RefusedAddress):
        connect("rebind.example", 80, (), time.monotonic() + 5)
    assert (names.asked, names.connected) == (2, ["93.184.216.34"])


def test_of_several_addresses_those_that_are_not_public_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch, ["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111"])
    with pytest.raises(ConnectionRefusedError):
        connect("many.example", 80, (), time.monotonic() + 5)
    assert names.connected == ["1.1.1.1", "2606:4700::1111"]


def test_a_resolver_that_does_not_answer_ends_with_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(3) or [])
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        connect("slow.example", 80, (), began + 0.1)
    assert time.monotonic() - began < 2.5
