"""Runs the WSGI server: granian, with a few processes of a few threads (docs/performance.md says why).

The site is loaded before the socket opens; the workers are forked from the process that loaded it,
and end when that does, however it ended. One of them leads: it watches the files for all.
"""

import gc
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import cast

from server.api.front import Front
from server.api.identities import Identities
from server.api.lazy import Lazy
from server.api.response import Answer
from server.api.serving.generations import Generation
from server.api.serving.http_server import WAITING, HttpServer
from server.api.serving.supervisor import Supervisor
from server.api.serving.unsent import Connections
from server.auth.database.file import database_file, is_sound
from server.auth.permissions import Actor
from server.auth.session_key import session_key
from server.config.model import Settings
from server.errors import SetupError
from server.events.database import EventDatabase
from server.events.hub import Hub
from server.events.recorder import Recorder
from server.events.recording import recording
from server.events.source import Source
from server.events.stream_counts import StreamCounts
from server.history.past import PastStates
from server.index.find import prepare_texts
from server.paths import incoming_folder
from server.site.background.checking import checker
from server.site.background.committer import committer
from server.site.background.following import follower
from server.site.background.scaling import scaler
from server.site.background.thread import Background
from server.site.change import Report
from server.site.change_log import ChangeLog
from server.site.configure import check_state_folder
from server.site.loading import cores, give_back
from server.site.site import Site
from server.site.watch import Watcher
from server.write.version import use_key

MOST_WORKERS = 4
COLLECT = (20_000, 20, 50)  # hardly anything here is in a cycle, and a collection delays answers
LEAD_AFTER_S = 0.2  # The first request is answered first: to begin to watch 10,000 files takes 30 ms.
SWITCH_S = 0.0005  # how long a thread computes until others have a turn, so that a write does not delay reads


def bind(host: str, port: int) -> socket.socket:
    """A socket for a server, which does not listen yet. Raises SetupError where the port can't be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind(address)
        return listener
    except OSError as error:
        what = error.strerror or str(error)
        raise SetupError(f"{host}:{port}", None, f"can't listen: {what}", "choose another --port") from error


def check_accounts(site: Site) -> SetupError | None:
    """What is wrong with the accounts, so that nobody can log in until it is repaired; content is served.

    Raises SetupError where the key of sessions can't be used, or the state folder not be trusted.
    """
    check_state_folder(site.root)
    settings = site.state.settings
    session_key(site.root)
    try:
        if settings.accounts or not is_sound(database_file(site.root)):
            directory = import_module("server.auth.directory").open_directory(site.root, settings)
            directory.accounts.close()
    except SetupError as error:
        return error
    return None


def worker_count(wanted: int | None, settings: Settings) -> int:
    """How many processes answer: as wanted, else one for each core up to MOST_WORKERS.

    One alone where requests are limited, since each would count for itself.
    """
    if settings.rate_limit:
        return 1
    return wanted or min(cores(), MOST_WORKERS)


@dataclass(frozen=True, slots=True)
class Shared:
    """What all processes of a server share: the log of changes, the socket that clients connect to, and how
    many event streams each has open.
    """

    log: ChangeLog
    listener: socket.socket
    streams: StreamCounts


def serve(
    site: Site,
    past: PastStates,
    shared: Shared,
    generation: Generation,
    workers: int,
    ready: Callable[[], None],
    report: Report,
) -> None:
    """Serve a loaded site until SIGTERM, or until another generation does; then finish what has begun.

    Where `past` holds a state, that is what is served, and nothing can be written.
    Each worker is forked with the site as it is here; one that ends unasked is replaced. `ready` is
    called once, and `report` of each change: of a write, in the process that wrote, and of what changed on
    disk in one process alone.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    began, log = time.perf_counter(), shared.log
    site.report = report
    recorder = Recorder(site.root, site.replaced, accounts=site.state.settings.accounts)
    if not past.held:
        site.observe(recorder)
        site.committer.on_commit = recorder.committed
    key = session_key(site.root)
    use_key(key)
    prepare_texts((past.held or site).state.snapshot)
    if generation.number == 1:
        site.share(log)
        shared.listener.listen(WAITING)
    else:
        change = site.succeed(log)
        give_back()  # what the record took, before each worker has it as its own
        report(change, time.perf_counter() - began)
        recorder.database.close()  # which no process may use that was not the one to open it
    site.replace_all = generation.ask_for_next
    retiring = threading.Event()

    def work() -> None:
        app, leader = _start(site, past, shared, key, report, recorder)
        hub = make_hub(app, recorder.database, shared)
        server = HttpServer(app, shared.listener, partial(incoming_folder, site.root), hub)
        threading.Thread(target=_retire, args=(retiring, leader, server), daemon=True).start()
        generation.answers()
        if generation.number == 1:
            ready()
        server.run()

    Supervisor(workers, work, generation.leash, retiring.set).run()


def _start(
    site: Site, past: PastStates, shared: Shared, key: str, report: Report, recorder: Recorder
) -> tuple[Front, Background]:
    """What an answering process does before its first request; returns the WSGI app, and what may lead."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECT)
    shared.streams.enter(shared.log.enter())
    site.catch_up()  # with what has changed since the parent read the site
    site.recover()  # of a worker that this one replaces
    follower(site).start()
    leader = Background("leader", partial(_lead, site, past, shared.log, report, recorder))
    leader.start()
    return make_app(site, key, past, recorder.database), leader


def make_hub(app: Front, database: EventDatabase, shared: Shared) -> Hub:
    """What serves the event streams of an answering process."""

    def identify(authorization: str) -> Actor:
        return app.identities.identify(authorization, app.site.state.settings)

    source = Source(database, lambda: shared.log.event, identify)
    return Hub(source, shared.streams, Connections())


def _retire(retiring: threading.Event, leader: Background, server: HttpServer) -> None:
    """Leave everything to the next generation, once this is to be done."""
    retiring.wait()
    server.retire()
    leader.stop()


def make_app(
    site: Site, key: str = "", past: PastStates | None = None, database: EventDatabase | None = None
) -> Front:
    """The entrance to a site, whose handlers are loaded when the first request needs one.

    `key` is that of its sessions, and `past` its states at commits, where these are known.
    """
    identities = Identities(site.root, site.state.settings, key=key)
    past, database = (
        past or PastStates(site),
        database or EventDatabase(site.root, site.state.settings.accounts),
    )
    handler = Lazy(lambda: import_module("server.api.app").handler(site, identities, past, database))
    return Front(site, identities, lambda environ: cast(Answer, handler()(environ)), past)


def _lead(
    site: Site, past: PastStates, log: ChangeLog, report: Report, recorder: Recorder, stop: threading.Event
) -> None:
    """Do what one process does for all, as soon as no other does: watch the files, scale pictures."""
    if stop.wait(LEAD_AFTER_S) or not log.lead(stop):
        return
    working: list[Watcher | Background] = [
        Watcher(site, report),
        scaler(site),
        checker(site, report),
        committer(site),
        recording(site, recorder),
    ]
    if not past.held:  # What changes is for a server to tell of that serves it.
        working.append(Background("webhooks", partial(_deliver, site)))
    if site.state.settings.search_index:
        working.append(import_module("server.search.sync").Sync(site, _tell))
    for one in working:
        one.start()
    stop.wait()
    for one in working:
        one.stop()
    log.resign()


def _deliver(site: Site, stop: threading.Event) -> None:
    """Deliver webhooks, from when there are some."""
    while not site.state.settings.webhooks:
        if stop.wait(LEAD_AFTER_S):
            return
    import_module("server.api.webhooks.delivery").deliver(site, stop)


def _tell(line: str) -> None:
    print(f"  {line}", flush=True)
