"""Runner of a WSGI app on one of the compared servers: `python -m bench.host SERVER PORT empty|site PATH`."""
# Each server runs as one process with four threads, and without an access log.

import logging
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server import Server

from server.api.app import create_app
from server.api.response import JSON
from server.auth.accounts import Accounts
from server.service.opening import Mode, open_site

HOST = "127.0.0.1"
THREADS = 4
App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def empty_app(answers: Mapping[str, bytes]) -> App:
    """Return an app that looks up recorded responses by URL, ignoring `&n=` and everything after it."""

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        query = environ.get("QUERY_STRING", "").partition("&n=")[0]
        body = answers[environ["PATH_INFO"] + "?" + query]
        start_response("200 OK", [("Content-Type", JSON), ("Content-Length", str(len(body)))])
        return [body]

    return app


def load_app(kind: str, path: Path) -> App:
    if kind == "empty":
        return empty_app(pickle.loads(path.read_bytes()))
    site = open_site(path, Mode.SERVER, records=False).site
    return create_app(site, Accounts(path))


def run_granian(app: App, port: int) -> None:
    # granian handles HTTP in Rust, and calls the app in Python threads.
    multiprocessing.set_start_method("fork", force=True)
    server = Server(
        "bench",
        address=HOST,
        port=port,
        interface=Interfaces.WSGI,
        workers=int(os.environ.get("BENCH_WORKERS", 1)),
        blocking_threads=THREADS,
        log_level=LogLevels.warning,
    )
    server.serve(target_loader=lambda *_: app, wrap_loader=False)


def run_waitress(app: App, port: int) -> None:
    # By default, waitress logs every request that has to wait.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    import_module("waitress").serve(app, host=HOST, port=port, threads=THREADS, _quiet=True)


def run_gunicorn(app: App, port: int) -> None:
    """Run gunicorn, a pure Python server, with `gthread` workers."""
    settings = {
        "bind": f"{HOST}:{port}",
        "workers": 1,
        "worker_class": "gthread",
        "threads": THREADS,
    }
    settings |= {"keepalive": 60, "loglevel": "warning"}

    def load_config(self: Any) -> None:
        for key, value in settings.items():
            self.cfg.set(key, value)

    base = import_module("gunicorn.app.base").BaseApplication
    members = {"load_config": load_config, "load": lambda self: app}
    sys.argv = sys.argv[:1]
    type("Application", (base,), members)().run()


def run_cheroot(app: App, port: int) -> None:
    import_module("cheroot.wsgi").Server((HOST, port), app, numthreads=THREADS).start()


SERVERS: Mapping[str, Callable[[App, int], None]] = {
    "granian": run_granian,
    "waitress": run_waitress,
    "gunicorn": run_gunicorn,
    "cheroot": run_cheroot,
}

if __name__ == "__main__":
    SERVERS[sys.argv[1]](load_app(sys.argv[3], Path(sys.argv[4])), int(sys.argv[2]))
