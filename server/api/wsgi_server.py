"""The server's worker processes."""

import gc
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import cast

from server.api.entrance import Entrance
from server.api.hints import Hints
from server.api.identities import Identities
from server.api.lazy import Lazy
from server.api.limiting.count_table import CountTable
from server.api.monitoring.request_counts import MonitoredParts, Observer, RequestCounts
from server.api.monitoring.request_log import JsonHandler, write_line
from server.api.response import Answer
from server.api.serving.generations import Generation
from server.api.serving.http_server import BACKLOG_CONNECTIONS, Connections, HttpServer
from server.api.serving.leader import Leader, background_jobs
from server.api.serving.supervisor import Supervisor
from server.auth.permissions import Actor
from server.auth.session_key import session_key
from server.config.model import Settings
from server.database.address import is_server
from server.database.file import database_file, is_usable_database
from server.database.notices import ACCOUNTS, COMMITS
from server.errors import SetupError
from server.events.hub import Hub
from server.events.presence import PresenceSource, PresenceTable
from server.events.stream import Source, StreamCounts
from server.history.past import PastStates
from server.history.remote.wakeup import wake_for
from server.jobs.reports import JobReports
from server.jobs.runner import Runner
from server.paths import incoming_folder
from server.schema.model import Schema
from server.service.opening import OpenSite
from server.site.background.jobs import FollowLog
from server.site.change import Report
from server.site.change_log import ChangeLog
from server.site.configure import check_state_folder
from server.site.loading import cores, release_free_memory
from server.site.site import Site
from server.write.precondition import use_key

MAX_DEFAULT_WORKERS = 4
# Higher than Python's defaults, because garbage collections delay responses and there are few reference
# cycles.
GC_THRESHOLDS = (20_000, 20, 50)
OTHER_KEY_MESSAGE = (
    "The last server that opened this accounts database had a different session key. Logins and entity tags "
    "from one machine are therefore invalid on the other. Set the same BIFOLIO_JWT_SECRET on all machines. "
    "If you have just changed the key, ignore this message; it is logged only once"
)
# How long a thread may hold the global interpreter lock while the event loop is waiting for it.
SWITCH_INTERVAL_S = 0.0002


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket without listening. Raises SetupError if the address can't be used."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind(address)
        return listener
    except OSError as error:
        raise _refusal(host, port, error) from error


def listen(listener: socket.socket) -> None:
    """Start listening. Raises SetupError if the port is taken."""
    try:
        listener.listen(BACKLOG_CONNECTIONS)
    except OSError as error:
        host, port = listener.getsockname()[:2]
        raise _refusal(host, port, error) from error


def _refusal(host: str, port: int, error: OSError) -> SetupError:
    what = error.strerror or str(error)
    fix = f"choose a different port with --port (with make: PORT={8080 if port != 8080 else 8081})"
    return SetupError(f"{host}:{port}", None, f"can't listen: {what}", fix)


def check_accounts(root: Path, settings: Settings) -> str:
    """Return a warning if users might be unable to sign in, or "" otherwise.

    Raises SetupError if the server can't be started.
    """
    check_state_folder(root)
    if settings.api.rate_limit:
        import_module("server.api.limiting.sharing").check_store(settings)
    key = session_key(root)
    try:
        if settings.accounts or not is_usable_database(database_file(root)):
            module = import_module("server.auth.directory")
            directory = module.open_directory(root, settings)
            differs = is_server(settings.accounts) and module.differs_from_last(directory.accounts, key)
            directory.accounts.close()
            return OTHER_KEY_MESSAGE if differs else ""
    except SetupError as error:
        return f"{error}; no user can log in until this is fixed"
    return ""


def worker_count(requested_count: int | None) -> int:
    return requested_count or min(cores(), MAX_DEFAULT_WORKERS)


@dataclass(frozen=True, slots=True)
class SharedResources:
    """Resources that all processes share.

    `limited` counts the requests of each client, and `transformations` counts its image transformations.
    """

    log: ChangeLog
    listener: socket.socket
    streams: StreamCounts = field(default_factory=StreamCounts)
    counts: RequestCounts = field(default_factory=RequestCounts)
    presence: PresenceTable = field(default_factory=PresenceTable)
    limited: CountTable = field(default_factory=CountTable)
    transformations: CountTable = field(default_factory=CountTable)
    jobs: JobReports = field(default_factory=JobReports)
    hints: Hints = field(default_factory=Hints)
    json_log: bool = False


def serve(
    opened: OpenSite,
    shared: SharedResources,
    generation: Generation,
    workers: int,
    ready: Callable[[], None],
    report: Report,
    loaded_after: int = 0,
) -> None:
    """Serve a site until SIGTERM arrives or the next generation takes over.

    - `ready`: a function that each worker of the first generation calls when it is ready.
    - `report`: a function that one of the processes calls after each change to files.
    - `loaded_after`: the end of the change log before the site was loaded. The first generation ignores it.
    """
    _begin_log(as_json=shared.json_log)
    began, log, site = time.perf_counter(), shared.log, opened.site
    key = session_key(site.root)
    use_key(key)
    if generation.number == 1:
        site.share(log)
        listen(shared.listener)
    else:
        change = site.start_new_generation(log, loaded_after)
        release_free_memory()  # Memory is freed before the fork, so that the workers don't copy it.
        report(change, time.perf_counter() - began)
        opened.recorder.database.close()  # unusable after a fork
    shutting_down = threading.Event()
    monitored = _monitored_parts(opened, shared)

    def work() -> None:
        app, leader = _prepare_worker(opened, shared, key, report, monitored)
        connections = Connections()
        hub = make_hub(app, monitored, shared, connections)
        observer = Observer(shared.counts, lambda: app.kept_bytes, log=shared.json_log)
        server = HttpServer(
            app, shared.listener, partial(incoming_folder, site.root), hub, observer, connections
        )
        threading.Thread(target=_shut_down, args=(shutting_down, leader, server), daemon=True).start()
        generation.report_ready()
        if generation.number == 1:
            ready()
        server.run()

    Supervisor(
        workers, work, generation.control_pipe, shutting_down.set, opened.timing.heartbeat_timeout_s
    ).run()


def _monitored_parts(opened: OpenSite, shared: SharedResources) -> MonitoredParts:
    return MonitoredParts(
        opened.recorder,
        shared.counts,
        shared.streams,
        shared.presence,
        opened.notices,
        shared.jobs,
        shared.transformations,
    )


def _begin_log(*, as_json: bool) -> None:
    handler = JsonHandler() if as_json else logging.StreamHandler()
    form = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.WARNING, format=form, handlers=[handler])
    # Only Bifolio logs at level INFO, because libraries log too much at this level.
    logging.getLogger("bifolio").setLevel(logging.INFO)


def _prepare_worker(
    opened: OpenSite, shared: SharedResources, key: str, report: Report, monitored: MonitoredParts
) -> tuple[Entrance, Leader]:
    site = opened.site
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    worker = shared.log.register_worker()
    shared.streams.register_worker(worker)
    shared.counts.register_worker(worker)
    site.catch_up()  # Apply the changes since the parent process loaded the site.
    site.recover()  # Complete or undo a write that a previous worker did not finish.
    Runner([FollowLog(site, opened.timing)]).start()
    monitored.notices.listen(COMMITS, partial(wake_for, site.root))
    monitored.notices.start()
    tell = _tell_json if shared.json_log else _tell

    def make_runner() -> Runner:
        shared.jobs.clear()
        return Runner(
            background_jobs(opened, monitored, shared.limited, report, tell), observe=shared.jobs.store
        )

    leader = Leader(shared.log, make_runner, opened.timing.start_delay_s)
    leader.start()
    return make_app(site, key, opened.past, monitored, shared.limited, shared.hints), leader


def make_hub(
    app: Entrance, monitored: MonitoredParts, shared: SharedResources, connections: Connections
) -> Hub:
    """Create the hub that sends events to a worker's event streams."""

    def identify(authorization: str) -> Actor:
        return app.identities.identify(authorization, app.site.state.settings)

    def schema() -> Schema:
        return app.site.state.schema

    source = Source(monitored.recorder.database, lambda: shared.log.last_event, identify, schema)
    presence = PresenceSource(monitored.presence, lambda: app.site.state)
    return Hub(source, monitored.streams, connections, presence)


def _shut_down(shutting_down: threading.Event, leader: Leader, server: HttpServer) -> None:
    shutting_down.wait()
    server.shut_down()
    leader.stop()


def make_app(
    site: Site,
    key: str = "",
    past: PastStates | None = None,
    monitored: MonitoredParts | None = None,
    limited: CountTable | None = None,
    hints: Hints | None = None,
    identities: Identities | None = None,
) -> Entrance:
    """Create the WSGI app. The Flask handlers are imported when they are first used."""
    settings = site.state.settings
    identities = identities or Identities(site.folder, settings, key=key)
    past, monitored = (
        past or PastStates(site),
        monitored or MonitoredParts.for_single_process(site.root, settings.accounts),
    )
    monitored.notices.listen(ACCOUNTS, identities.invalidate)
    handler = Lazy(
        lambda: import_module("server.api.app").make_flask_handler(site, identities, past, monitored)
    )
    return Entrance(site, identities, lambda environ: cast(Answer, handler()(environ)), past, limited, hints)


def _tell(line: str) -> None:
    print(f"  {line}", flush=True)


def _tell_json(line: str) -> None:
    write_line("info", "log", {"message": line})
