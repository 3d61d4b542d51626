"""What a client has not taken is known to the system, and a client can be given up."""

import socket
from contextlib import suppress

import pytest

from server.api.serving.sockets import Connections
from tests.waiting import until


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_a_client_has_not_taken_is_known(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    connections = Connections()
    with (
        socket.create_server((host, 0), family=family) as listener,
        socket.create_connection(listener.getsockname()[:2], timeout=5) as client,
    ):
        server, address = listener.accept()
        name = f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
        with server:
            assert connections.unsent({name}) == {name: 0}
            server.setblocking(False)
            sent = 0
            with suppress(BlockingIOError):
                while True:
                    sent += server.send(bytes(100_000))
            assert connections.unsent({name, "127.0.0.1:1"})[name] > 0
            while sent:
                sent -= len(client.recv(1_000_000))
            until(lambda: connections.unsent({name}) == {name: 0}, 5)
            connections.give_up({name})
            assert client.recv(1) == b""
        assert connections.unsent({name}) == {}
