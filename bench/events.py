"""Benchmark of event streams: memory, delay, and effect on reads."""

import selectors
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from bench.effort import scaled, scaled_seconds
from bench.host import HOST
from bench.load import Requests, Result, run
from bench.read_requests import cases
from bench.serving import Serving, bifolio
from bench.sites import Sizes, article_path
from bench.tables import count, ratio, show, size
from server.api.serving.http_server import max_connections

STREAMS, WORKERS = scaled(2000), 2
BATCH = 100  # clients that connect at the same time
EDITS = scaled(21)
SECONDS = scaled_seconds(5)  # duration of the reads in each turn, in seconds
_REQUEST = f"GET /events HTTP/1.1\r\nHost: {HOST}\r\nAccept: text/event-stream\r\n\r\n".encode()
_EDITED = ", an edit each second"
_KINDS = ("no streams", f"{STREAMS:,} streams", f"no streams{_EDITED}", f"{STREAMS:,} streams{_EDITED}")


class StreamClients:
    """Many clients that read event streams, all in one thread."""

    def __init__(self, serving: Serving) -> None:
        self._port, self._selector = serving.port, selectors.DefaultSelector()
        self._told: dict[socket.socket, int] = {}
        self._tails: dict[socket.socket, bytes] = {}
        self._changed = threading.Condition()
        self._stop = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def open(self, number: int) -> None:
        """Open `number` streams, a few at a time, and wait until all have started."""
        for begun in range(0, number, BATCH):
            for _ in range(min(BATCH, number - begun)):
                client = socket.create_connection((HOST, self._port), timeout=10)
                client.sendall(_REQUEST)
                client.setblocking(False)
                self._told[client] = 0
                self._tails[client] = b""
                self._selector.register(client, selectors.EVENT_READ)
            self.wait(1)

    def wait(self, events: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: min(self._told.values()) >= events, 30):
                raise RuntimeError(f"{sum(n < events for n in self._told.values())} streams told too little")

    @property
    def told(self) -> int:
        with self._changed:
            return min(self._told.values())

    def close(self) -> None:
        self._stop = True
        self._thread.join()
        for client in self._told:
            client.close()

    def _read(self) -> None:
        while not self._stop:
            ready = self._selector.select(0.05)
            with self._changed:
                for key, _ in ready:
                    self._take(key.fileobj)  # type: ignore[arg-type]
                self._changed.notify_all()

    def _take(self, client: socket.socket) -> None:
        data = client.recv(1 << 20)
        if not data:
            raise RuntimeError("the server has ended a stream")
        text = self._tails[client] + data
        self._told[client] += text.count(b"\nevent: ")
        self._tails[client] = text[-7:] if not text.endswith(b"\nevent: ") else b""


def measure(root: Path, articles: int, rounds: int) -> None:
    """Print the memory and delay of event streams, and their effect on reads."""
    max_connections()  # This process needs one open file for each stream.
    sizes = Sizes(articles)
    paths = [path for case in cases(sizes) for path in case.paths[:40]]
    found: dict[str, list[Result]] = {kind: [] for kind in _KINDS}
    with bifolio(root, WORKERS) as serving:
        run(serving, Requests(paths), 2)
        crowd = StreamClients(serving)
        crowd.open(2 * BATCH)  # warm-up for both workers
        crowd.close()
        before = server_memory(serving)
        crowd = StreamClients(serving)
        crowd.open(STREAMS)
        time.sleep(1)
        each = (server_memory(serving) - before) / STREAMS
        taken = sorted(_edit(crowd, root, number) for number in range(EDITS))
        after = (server_memory(serving) - before) / STREAMS
        crowd.close()
        for turn in range(rounds):
            found[_KINDS[0]].append(run(serving, Requests(paths), SECONDS, turn))
            found[_KINDS[2]].append(_run_beside_edits(serving, root, paths, turn))
            crowd = StreamClients(serving)
            crowd.open(STREAMS)
            found[_KINDS[1]].append(run(serving, Requests(paths), SECONDS, turn))
            found[_KINDS[3]].append(_run_beside_edits(serving, root, paths, turn))
            crowd.close()
            time.sleep(1)
    cells = [size(each), size(after), *(f"{seconds * 1000:.0f} ms" for seconds in (median(taken), taken[-1]))]
    head = [
        "on two workers",
        "memory each",
        "after edits",
        "edit sent to all streams, median",
        "longest",
    ]
    show("Event streams", head, [[f"{STREAMS:,} streams", *cells]])
    _print_reads(found)


def _print_reads(found: dict[str, list[Result]]) -> None:
    rows = []
    for number, (kind, results) in enumerate(found.items()):
        rate, middle = (median(getattr(r, name) for r in results) for name in ("rate", "median_ms"))
        p99, without = (median(r.p99_ms for r in found[k]) for k in (kind, _KINDS[number // 2 * 2]))
        rows.append([kind, count(rate), f"{middle:.2f} ms", f"{p99:.2f} ms", ratio(p99 / without)])
    head = ["reads", "/s", "median", "p99", "ratio to no streams"]
    show("Reads beside event streams", head, rows, "Each number is the median of all rounds.")


def _edit(crowd: StreamClients, root: Path, number: int) -> float:
    time.sleep(0.2)  # Wait until the previous edit has been processed completely.
    told, began = crowd.told, time.perf_counter()
    _write(root, number)
    crowd.wait(told + 1)
    return time.perf_counter() - began


def _write(root: Path, number: int) -> None:
    path = root / article_path(number)
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[1] = f"title: Edited {number} at {time.time_ns()}"
    path.write_text("\n".join(lines), encoding="utf-8")


def _run_beside_edits(serving: Serving, root: Path, paths: Sequence[str], turn: int) -> Result:
    """Measure reads while a document is edited every second."""
    stop = threading.Event()

    def edit() -> None:
        number = EDITS
        while not stop.wait(1):
            _write(root, number)
            number += 1

    editing = threading.Thread(target=edit)
    editing.start()
    try:
        return run(serving, Requests(paths), SECONDS, turn)
    finally:
        stop.set()
        editing.join()


def server_memory(serving: Serving) -> int:
    """Return the memory (PSS) in bytes of all processes of a server."""
    below, found = [serving.pid], set[int]()
    while below:
        pid = below.pop()
        found.add(pid)
        with suppress(FileNotFoundError, ProcessLookupError):  # A process, such as git, may have just ended.
            for listed in Path(f"/proc/{pid}/task").glob("*/children"):
                below.extend(map(int, listed.read_text().split()))
    return sum(_pss(pid) for pid in found)


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0) * 1024
