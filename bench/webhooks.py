"""Benchmark of webhooks: the delay of a notification, and deliveries per second."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.effort import scaled
from bench.host import HOST
from bench.serving import bifolio, fetch
from bench.sites import article_path, make_site
from bench.tables import count, median_and_p99, show

WORKERS = 2
EDITS = scaled(100)  # number of edits, made one after the other
AT_ONCE = scaled(900)  # number of documents changed at once; a larger change would become a single event
WAIT_S = 60.0


class Receiver(ThreadingHTTPServer):
    """HTTP server that receives deliveries, and records when each document's title arrived."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.titles: dict[str, float] = {}
        self.changed = threading.Condition()

    def wait(self, title: str) -> float:
        with self.changed:
            if not self.changed.wait_for(lambda: title in self.titles, WAIT_S):
                raise RuntimeError(f"{title} was not delivered")
            return self.titles[title]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        title = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["entry"].get("title")
        self.send_response(204)
        self.end_headers()
        with self.server.changed:
            self.server.titles.setdefault(title, time.perf_counter())
            self.server.changed.notify_all()

    def log_message(self, *_: object) -> None:
        """Ignore the log message."""


def measure(root: Path, articles: int) -> None:
    """Print the delay of deliveries after edits and writes, and deliveries per second."""
    make_site(root, articles)
    with _receiving() as receiver:
        os.environ["HOOK"] = f"http://{HOST}:{receiver.server_port}/"
        hook = "{name: bench, url: env:HOOK, events: [entry.update]}"
        with (root / "site.yaml").open("a") as settings:
            settings.write(f"\nwebhooks_allow: [{HOST}]\nwebhooks:\n  - {hook}\n")
        with bifolio(root, WORKERS) as serving:
            fetch(serving.connect(), "/api/articles?pagination[pageSize]=1")
            time.sleep(1)
            taken = sorted(_edit(receiver, root, number) for number in range(EDITS))
            rate = _rate(receiver, root)
    cells = [*(f"{seconds * 1000:.0f} ms" for seconds in median_and_p99(taken)), count(rate)]
    head = ["", "an edit is delivered, median", "p99", "deliveries/s"]
    note = (
        f"Each request contains an article with its relations. {AT_ONCE} articles change at once, and"
        " Bifolio sends five requests at a time."
    )
    show("Webhooks", head, [[f"{count(articles)} articles", *cells]], note)


@contextmanager
def _receiving() -> Iterator[Receiver]:
    with Receiver() as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        yield receiver
        receiver.shutdown()


def _edit(receiver: Receiver, root: Path, number: int) -> float:
    time.sleep(0.15)
    title = f"Edited {number}"
    began = time.perf_counter()
    _write(root, number, title)
    return receiver.wait(title) - began


def _rate(receiver: Receiver, root: Path) -> float:
    for number in range(AT_ONCE):
        _write(root, number, f"Again {number}")
    last = max(receiver.wait(f"Again {number}") for number in range(AT_ONCE))
    times = [receiver.titles[f"Again {number}"] for number in range(AT_ONCE)]
    return (AT_ONCE - 1) / (last - min(times))


def _write(root: Path, number: int, title: str) -> None:
    path = root / article_path(number)
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[1] = f"title: {title}"
    path.write_text("\n".join(lines), encoding="utf-8")
