"""Runs the WSGI server: granian, one process with a few threads (docs/performance.md says why).

The site is loaded before the socket opens; the process that answers is forked from the one that
loaded it, watches the files, and ends when its parent does, however that ended.
"""

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server import Server

from server.accounts import Accounts
from server.app import create_app
from server.errors import SetupError
from server.scaling import Scaler
from server.sessions import Sessions
from server.site import Site
from server.watch import Report, Watcher

GRACE_S = 4
THREADS = 4


def check_port(host: str, port: int) -> None:
    """Raise SetupError where the port can't be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        what = error.strerror or str(error)
        raise SetupError(f"{host}:{port}", None, f"can't listen: {what}", "choose another --port") from error


def check_accounts(site: Site) -> None:
    """Raise SetupError where the accounts database or the key of sessions can't be used."""
    Accounts(site.root, site.state.settings.accounts).close()
    Sessions(site.root, 0)


def serve(site: Site, host: str, port: int, ready: Callable[[], None], report: Report) -> None:
    """Serve a loaded site until SIGTERM or SIGINT, then finish what is being answered."""
    multiprocessing.set_start_method("fork", force=True)
    server = Server(
        "server",
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        workers=1,
        blocking_threads=THREADS,
        workers_kill_timeout=GRACE_S,
        log_level=LogLevels.warning,
    )

    def load_app(*_: Any) -> Any:
        return _start(site, ready, report)

    server.serve(target_loader=load_app, wrap_loader=False)


def _start(site: Site, ready: Callable[[], None], report: Report) -> Any:
    """What the answering process does before its first request; returns the WSGI app."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()
    watcher = Watcher(site, report)
    watcher.start()
    Scaler(site).start()
    site.refresh()  # what changed between loading and watching
    app = create_app(site, Accounts(site.root, site.state.settings.accounts))
    ready()
    return app


def _follow_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
