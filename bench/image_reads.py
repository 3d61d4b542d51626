"""Benchmark of API reads while other clients request images that are not cached."""

import itertools
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from bench.attacks import Request, status_of
from bench.effort import scaled, scaled_seconds
from bench.host import HOST
from bench.pictures import PHOTOGRAPH, make_photographs
from bench.read_requests import cases
from bench.serving import Serving, bifolio, fetch
from bench.sites import make_site
from bench.tables import median_and_p99, ratio, show

ARTICLES = scaled(1000, 50)
CLIENTS = 4
ROUNDS = scaled(16, 1)
PHASE_S = scaled_seconds(4)  # 1 % of the reads in a phase are more than ten.
READ_INTERVAL_S = 0.003
# The requests before a phase are finished, and those of a phase have begun, after this time.
SETTLING_S = scaled_seconds(1)
MAX_EDGE = 3840
FORMATS = ("webp", "jpg", "png", "avif")
SETTINGS = f"media: {{transform: {{per_minute: 1000000, max_edge: {MAX_EDGE}}}}}\n"
Phase = tuple[float, float]  # median and p99 in seconds


def measure(folder: Path) -> None:
    """Print the latency of reads alone and beside requests for new images, in phases that alternate."""
    sizes = make_site(folder, ARTICLES)
    with (folder / "site.yaml").open("a") as file:
        file.write(SETTINGS)
    names = _make_pictures(folder / "content/uploads")
    reads = itertools.cycle([path for case in cases(sizes)[:2] for path in case.paths])
    phases: dict[bool, list[Phase]] = {False: [], True: []}
    load = os.getloadavg()[0]
    with bifolio(folder) as serving, _requesting(serving.port, names) as (request_images, results):
        _read(serving, reads, PHASE_S)
        for turn in range(ROUNDS):
            for is_beside in (False, True) if turn % 2 else (True, False):
                request_images(is_beside)
                _read(serving, reads, SETTLING_S)
                phases[is_beside].append(_read(serving, reads, PHASE_S))
        statuses = results()
    _show(phases, statuses, load)


def _show(phases: dict[bool, list[Phase]], statuses: "Counter[int]", load: float) -> None:
    rows = []
    for i, name in enumerate(("median", "p99")):
        alone, beside = ([phase[i] * 1000 for phase in phases[is_beside]] for is_beside in (False, True))
        ratios = [one / other for one, other in zip(beside, alone, strict=True)]
        cells = [f"{median(alone):.2f} ms", f"{median(beside):.2f} ms", ratio(median(ratios))]
        rows.append([name, *cells])
    counts = ", ".join(f"{number} × {status}" for status, number in sorted(statuses.items()))
    note = (
        f"Medians of {ROUNDS} phases of {PHASE_S:g} s. {CLIENTS} clients request distinct URLs of photographs"
    )
    note += f" of {PHOTOGRAPH.width} × {PHOTOGRAPH.height} pixels, a tenth of them cut off ({counts})."
    note += f" The load average at the start was {load:.1f}."
    show("Images by URL: reads of the API beside new images", ["", "alone", "beside", "ratio"], rows, note)


def _make_pictures(uploads: Path) -> Sequence[str]:
    """Return the names of ten pictures. The last one is damaged."""
    pictures = make_photographs(uploads, 2)
    data = pictures[0].read_bytes()
    (uploads / "cut.jpg").write_bytes(data[: len(data) * 2 // 3])
    return [*(pictures[number % 2].name for number in range(9)), "cut.jpg"]


def _read(serving: Serving, reads: Iterator[str], duration_s: float) -> Phase:
    taken, connection, end = list[float](), serving.connect(), time.monotonic() + duration_s
    while time.monotonic() < end:
        path, began = f"{next(reads)}&n={time.monotonic_ns()}", time.perf_counter()
        fetch(connection, path)
        taken.append(time.perf_counter() - began)
        time.sleep(READ_INTERVAL_S)
    connection.close()
    return median_and_p99(taken)


@contextmanager
def _requesting(
    port: int, names: Sequence[str]
) -> "Iterator[tuple[Callable[[bool], None], Callable[[], Counter[int]]]]":
    """Context manager: run a process with the clients that request images.

    Yields a function that starts and stops them, and one that returns the statuses of the responses.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run_clients, args=(port, names, theirs), daemon=True)
    process.start()

    def results() -> "Counter[int]":
        ours.send(None)
        statuses: Counter[int] = ours.recv()
        return statuses

    try:
        yield ours.send, results
    finally:
        process.terminate()
        process.join()


def _run_clients(port: int, names: Sequence[str], control: Connection) -> None:
    numbers, lock, are_active, statuses = (
        itertools.count(),
        threading.Lock(),
        threading.Event(),
        Counter[int](),
    )

    def send() -> None:
        while True:
            are_active.wait()
            with lock:
                number = next(numbers)
            name, width = names[number % len(names)], 1 + number * 997 % MAX_EDGE
            format_ = FORMATS[number // 2 % len(FORMATS)]
            connection = HTTPConnection(HOST, port, timeout=60)
            status = status_of(connection, Request(f"/uploads/{name}?w={width}&fm={format_}"))
            connection.close()
            with lock:
                statuses[status] += 1

    for _ in range(CLIENTS):
        threading.Thread(target=send, daemon=True).start()
    while (is_active := control.recv()) is not None:
        (are_active.set if is_active else are_active.clear)()
    with lock:
        control.send(statuses)
