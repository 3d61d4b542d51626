"""Benchmark of three machines: writes for each value of `git.push`, their delay, and reads."""
# Everything runs on one computer without a network between the machines, their git remote and PostgreSQL.

import itertools
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.effort import scaled, scaled_seconds
from bench.host import HOST
from bench.load import Requests, Result, run
from bench.serving import Serving, free_port, running
from bench.tables import count, median_and_p99, ratio, show
from tests.git import git
from tests.machines.clients import ask
from tests.machines.cluster import Cluster, Machine
from tests.postgres import Postgres, postgres

NOTES = 1000
WRITING_S = scaled_seconds(5)
# name of the row, number of machines that write, and number of clients of each
WRITERS = (("one client", 1, 1), ("8 clients of one machine", 1, 8), ("6 clients of three machines", 3, 2))
SHOWN = scaled(60)  # number of writes whose delay is measured
WAIT_S = 30.0
READING_S = scaled_seconds(4)
ROUNDS = scaled(3, 1)
NGINX = Path(__file__).parent.parent / "deploy/nginx.conf"
_MAIN = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{config}
}}
"""
_PATHS = [f"/api/notes/n{number}" for number in range(50)] + ["/api/notes?sort=title&pagination[pageSize]=10"]


def measure() -> None:
    """Print the measurements of writes and reads on three machines."""
    with postgres() as database:
        measured = [_write(database, push) for push in ("off", "after", "before")]
        rows = [row for rows, _ in measured for row in rows]
        head = ["git.push", "who writes", "writes/s", "an answer, median", "p99", "503"]
        show("Writing", head, rows, f"A site of {NOTES} notes; each write changes one; `git.follow: 1s`.")
        head = ["git.push", "on all machines, median", "p99"]
        show("A write until all machines show it", head, [row for _, row in measured if row])
        _read(database)


@contextmanager
def _machines(database: Postgres, push: str) -> Iterator[Cluster]:
    database.empty()
    with tempfile.TemporaryDirectory(prefix="bifolio-bench-") as folder:
        cluster = Cluster(Path(folder), database, push, notes=NOTES)
        # Use the path of the remote, because git:// would delay each push by 40 ms.
        for machine in cluster.machines:
            git(machine.root, "remote", "set-url", "origin", str(cluster.remote.repository))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.end()


def _write(database: Postgres, push: str) -> tuple[list[list[str]], list[str]]:
    """Return the rows for one value of `git.push`: the rates of writes, and the delay until other machines
    show them.
    """
    with _machines(database, push) as cluster:
        rows = [
            [f"`{push}`", name, *_rate(cluster.machines[:machines], clients)]
            for name, machines, clients in WRITERS
        ]
        shown = [] if push == "off" else [_visible_delay_s(cluster, number) for number in range(SHOWN)]
    return rows, [f"`{push}`", *_spread(shown)] if shown else []


def _spread(seconds: list[float]) -> tuple[str, str]:
    if not seconds:
        return "-", "-"
    typical, long = median_and_p99(seconds)
    return f"{typical * 1000:.0f} ms", f"{long * 1000:.0f} ms"


def _rate(machines: list[Machine], clients: int) -> list[str]:
    """Return the number of writes per second, their durations, and the number of 503 responses."""
    # Each client writes to its own documents.
    taken: list[float] = []
    refused: list[int] = []
    end = time.perf_counter() + WRITING_S

    def write(machine: Machine, client: int) -> None:
        for number in itertools.count():
            if (began := time.perf_counter()) > end:
                return
            note = (client * 100 + number) % NOTES
            answer = ask(machine, "PUT", f"/api/notes/n{note}", {"data": {"text": f"{client} {number}"}})
            if answer.status == 200:
                taken.append(time.perf_counter() - began)
            elif answer.status == 503:  # The write was rejected because other machines always pushed first.
                refused.append(number)
            else:
                raise RuntimeError(f"{answer.status} {answer.body}")

    who = [(machine, number) for number, machine in enumerate(machines * clients)]
    threads = [threading.Thread(target=write, args=arguments) for arguments in who]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [f"{len(taken) / WRITING_S:.1f}", *_spread(taken), str(len(refused))]


def _visible_delay_s(cluster: Cluster, number: int) -> float:
    """Return how many seconds it takes until all machines show a write on one of them."""
    text = f"shown {number}"
    began = time.perf_counter()
    writer = cluster.machines[number % 3]
    answer = ask(writer, "PUT", "/api/notes/n999", {"data": {"text": text}})
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} {answer.body}")
    for machine in cluster.machines:
        while text not in json.dumps(ask(machine, "GET", "/api/notes/n999").body):
            if time.perf_counter() - began > WAIT_S:
                raise RuntimeError(f"{machine.name} does not show {text}")
            time.sleep(0.002)
    taken = time.perf_counter() - began
    time.sleep(0.05)
    return taken


def _read(database: Postgres) -> None:
    """Print reads per second through nginx, with one machine and with three."""
    with _machines(database, "before") as cluster:
        behind = {"one machine": cluster.machines[:1], "three machines": cluster.machines}
        best: dict[str, Result] = {}
        for turn, (name, machines) in itertools.product(range(ROUNDS), behind.items()):
            with _nginx(machines) as serving:
                run(serving, Requests(_PATHS), 1)
                result = run(serving, Requests(_PATHS), READING_S, turn, connections=12)
                best[name] = max(best.get(name, result), result, key=lambda found: found.rate)
    first = best["one machine"].rate
    rows = [
        [f"nginx, {name}", count(r.rate), ratio(r.rate / first), f"{r.p99_ms:.1f} ms"]
        for name, r in best.items()
    ]
    show("Reading", ["", "reads/s", "", "p99"], rows, "All on the same cores: nginx keeps nothing here.")


@contextmanager
def _nginx(machines: list[Machine]) -> Iterator[Serving]:
    """Context manager: run nginx in front of the given machines, configured as in deploy/."""
    port = free_port()
    lines = NGINX.read_text().replace("listen 80;", f"listen {HOST}:{port};").splitlines()
    servers = "\n".join(f"    server {HOST}:{m.port} max_fails=1 fail_timeout=5s;" for m in machines)
    config = "\n".join(
        servers if line.startswith("    server one:") else line
        for line in lines
        if not line.startswith(("    server two:", "    server three:"))
    )
    with tempfile.TemporaryDirectory(prefix="bifolio-nginx-") as folder:
        (Path(folder) / "nginx.conf").write_text(_MAIN.format(folder=folder, config=config))
        command = ["nginx", "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]
        command += ["-g", "user root;"] if Path("/proc/self").stat().st_uid == 0 else []
        with running(command, port) as serving:
            yield serving
