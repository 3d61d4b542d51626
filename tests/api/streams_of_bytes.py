"""Generator of random HTTP byte streams in which two parsers may disagree about where a request ends.

Each stream contains real requests and requests hidden in a body, a header or a chunk. The path of each
contains a marker, so the server's log shows which of them the server treated as requests.
"""

import re
from random import Random

MARKER = re.compile(rb"[a-z]+-\d+[rh]\d+z")  # r: sent as a request; h: hidden inside another request
_LENGTHS = (
    "{n}", "{n}", "{n}", "0", "1", "{less}", "{more}", "+{n}", "-{n}", "0{n}", "0x{n}", " {n} ", "{n}, {n}",
    "{n}, 0", "{n} 0", "{n};", "{n}.0", "{n}e0", "{n}\t", "{n}\x0b", "{n}\0", "{huge}", "\uff15", "",
    "\r\n {n}",
)  # fmt: skip
_CODINGS = (
    "chunked", "chunked", "chunked", "Chunked", "\tchunked", "chunked ", "\x0bchunked", "chunked\0",
    "xchunked",
    "chunkedx", "chunked, chunked", "identity", "chunked, identity", "identity, chunked", "gzip, chunked",
    "chunked, gzip", '"chunked"', "chunked;q=1", "chunked,", ",chunked", "", "cow", "\r\n chunked",
    "\xa0chunked", "chun\xefed", "chunked\r\n X", "chunked\rX: y",
)  # fmt: skip
_NAME_ENDS = (": ", ": ", ": ", ":", ":\t", " : ", "\t:", "\0:", "\r\n :", "_:", " ")
_NAME_BEGINS = ("", "", "", "", " ", "\t", "\0", "X: y\r", "X: y\n", "X:\r\n ")
_LINE_ENDS = ("\r\n", "\n", "\r", "\r\r\n", "\n\r", " \r\n", "\x00\r\n")
_VERSIONS = (
    "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/0.9", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "", "HTTP/1.10",
)  # fmt: skip
_METHODS = (
    "GET", "GET", "POST", "PUT", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "G ET",
    "CONNECT",
)  # fmt: skip
_TARGETS = (
    "{path}",
    "http://x{path}", "http://y:80{path}", "HTTP://x{path}", "//x{path}", "{path}#a", "{path}?a b",
    "{path}?a=%0d%0a",
    "{path}%00", "{path}%20HTTP/1.1%0d%0aX:y", "x{path}", "{path}\t", "{path}\xe9", "{path};a=b",
    "ftp://x{path}",
)  # fmt: skip
_OTHERS = (
    "X: y", "X: y\r\n z", "X:\r\n\tz", "X", ": y", "X\0: y", "X: y\0", "X: y\rZ: z", "Connection: close",
    "Connection: Content-Length", "Connection: Transfer-Encoding", "Connection: keep-alive, X",
    "Connection: Host",
    "Connection: Upgrade\r\nUpgrade: h2c", "Connection: Upgrade\r\nUpgrade: websocket",
    "Expect: 100-continue",
    "Expect: x", "TE: trailers", "Trailer: Content-Length", "Host: y", "X_Y: z", "Content-Encoding: gzip",
    "Keep-Alive: timeout=1", "X-HTTP-Method-Override: PUT", "Max-Forwards: 0", "Proxy-Connection: close",
    "X: \xff", "\xff: x", "X(y): z", "X: " + "y" * 9000,
)  # fmt: skip
_CHUNK_SIZES = (
    "{x}", "{x}", "{x}", "{x}", "0{x}", "0x{x}", "{x} ", " {x}", "{x}\t", "{x};a", "{x};a=b",
    '{x};a="b\r\n0"',
    "{x};\n", "{x}\n0", "+{x}", "-{x}", "{x}\0", "{x}g", "{huge}{x}", "1{zeros}{x}", "{x}\r", "{x} ;a",
    "{x},", "",
)  # fmt: skip
_CHUNK_ENDS = ("\r\n", "\n", "\r", "", "XX", "\r\n\r\n", "\n\r", "\r\r\n")
_LAST_CHUNKS = ("0", "00", "-0", "0;a", "0x0", "", "0 ", "0" * 20, "0\t", ";")
_TRAILERS = ("", "X: y\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "X\r\n", "{hidden}")
_SPECIAL = (
    "\r", "\n", "\r\n", "\0", "\t", " ", ":", ",", ";", "\x0b", "\x0c", "\x85", "\xa0", "\xff", "\r\n ",
)  # fmt: skip


class Streams:
    """Random streams for one client, generated from a seed. All markers begin with `name`."""

    def __init__(self, name: str, seed: str) -> None:
        self._name, self._random = name, Random(f"{seed} {name}")
        self._count = self._markers = 0
        self._rate = 0.0  # probability that a part of a request is malformed

    def next(self) -> list[bytes]:
        """Return the next stream as a list of pieces, which the client sends one by one."""
        self._count, self._markers = self._count + 1, 0
        self._rate = self._random.choice((0.005, 0.02, 0.1))
        whole = "".join(self._request() for _ in range(self._random.randint(1, 4)))
        data = self._disturbed(whole).encode("latin-1", "replace")
        data += f"GET {self._path('r')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        if self._random.random() < 0.6:
            return [data]
        cut = self._random.randrange(1, len(data))
        return [data[:cut], data[cut:]]

    def _pick(self, choices: tuple[str, ...]) -> str:
        """Return the first choice, which is well-formed, or sometimes a random choice (with the probability
        `_rate`).
        """
        return self._random.choice(choices) if self._random.random() < self._rate else choices[0]

    def _path(self, kind: str) -> str:
        self._markers += 1
        return f"/api/notes/{self._name}-{self._count}{kind}{self._markers}z"

    def _hidden(self) -> str:
        return f"GET {self._path('h')} HTTP/1.1\r\nHost: x\r\nX: y"

    def _request(self) -> str:
        target = self._pick(_TARGETS).replace("{path}", self._path("r"))
        headers, body = self._framing()
        others = [self._random.choice(_OTHERS) for _ in range(self._random.choice((0, 0, 0, 0, 1, 2)))]
        hosts = [] if self._random.random() < 0.04 else ["Host: x"]
        if self._random.random() < 0.01:
            others += ["X: y"] * 10_000
        lines = [f"{self._random.choice(_METHODS)} {target} {self._pick(_VERSIONS)}"]
        lines += self._random.sample([*hosts, *headers, *others], len(hosts) + len(headers) + len(others))
        head = "".join(line + self._pick(_LINE_ENDS) for line in [*lines, ""])
        return self._pick(("", "\r\n", "\n", "\r", " ", "\x00")) + head + body

    def _framing(self) -> tuple[list[str], str]:
        """Return the headers that specify the body's length, and the body."""
        kind = self._random.random()
        hidden = f"{self._hidden()}\r\n\r\n"
        if kind < 0.2:
            return [], ""
        if kind < 0.55:
            return [self._length(hidden) for _ in range(self._random.choice((1,) * 9 + (2,)))], hidden
        chunks = self._chunks()
        headers = [self._coding() for _ in range(self._random.choice((1,) * 9 + (2,)))]
        if kind < 0.85:
            return headers, chunks
        return [*headers, self._length(chunks)], chunks

    def _length(self, body: str) -> str:
        size = len(body)
        number = self._pick(_LENGTHS).format(n=size, less=size // 2, more=size + 40, huge=2**64 + size)
        return self._name_of("Content-Length") + number.encode("utf-8").decode("latin-1")

    def _coding(self) -> str:
        return self._name_of("Transfer-Encoding") + self._pick(_CODINGS)

    def _name_of(self, header: str) -> str:
        return self._pick(_NAME_BEGINS) + header + self._pick(_NAME_ENDS)

    def _chunks(self) -> str:
        parts = []
        for _ in range(self._random.randint(0, 3)):
            text = f"{self._hidden()}\r\n\r\n"
            size = self._pick(_CHUNK_SIZES).format(x=f"{len(text):x}", huge="f" * 16, zeros="0" * 16)
            parts += [size, self._pick(_CHUNK_ENDS), text, self._pick(_CHUNK_ENDS)]
        trailer = self._pick(_TRAILERS).replace("{hidden}", f"{self._hidden()}\r\n")
        return "".join(
            [*parts, self._pick(_LAST_CHUNKS), self._pick(_CHUNK_ENDS), trailer, self._pick(_CHUNK_ENDS)]
        )

    def _disturbed(self, text: str) -> str:
        """Return the text, sometimes with a special character inserted outside the markers."""
        if self._random.random() < 0.75:
            return text
        at = self._random.randrange(len(text))
        for found in MARKER.finditer(text.encode("latin-1", "replace")):
            if found.start() < at < found.end():
                at = found.start()
        return text[:at] + self._pick(_SPECIAL) + text[at:]
