"""`bifolio serve`."""

import multiprocessing
import os
import signal
import socket
import sys
import time
import webbrowser
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path

import click

from server.api.environ import is_loopback
from server.api.monitoring.request_log import JsonLog
from server.api.serving.generations import Generation, Generations
from server.api.serving.takeover import TakenOverSocket, TakeoverListener, take_over
from server.api.wsgi_server import SharedResources, bind, check_accounts, serve, worker_count
from server.auth.owner import make_key
from server.commands.announce import Terminal
from server.config.model import Settings
from server.config.webhooks import check_environment
from server.database.address import require_driver
from server.errors import SetupError
from server.index.find import prepare_texts
from server.jobs.job import Timing
from server.service.opening import Mode, OpenSite, open_site
from server.site.change import Change
from server.site.change_log import ChangeLog
from server.site.configure import Configuration, recover_configuration
from server.site.loading import NICENESS, Progress, cores, return_large_blocks
from server.site.site import Site
from server.storage.bucket.opening import require_library
from server.storage.git.refs import date_and_subject
from server.storage.helper_processes import end_with_parent
from server.storage.host_lease import HostLease
from server.tools.terminal import (
    check_site,
    find_commit,
    one_line_errors,
    progress_bar,
    serve_commit,
    site_option,
)

Log = Terminal | JsonLog
OFFER_TIMEOUT_S = 2.0  # How long to wait for the other server to offer its socket.
OFFER_POLL_S = 0.05
START_TIMEOUT_S = 60.0


@click.command("serve")
@site_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The IP address or host name to listen on."
)
@click.option(
    "--port", default=1337, show_default=True, type=click.IntRange(1, 65535), help="The port to listen on."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="The number of worker processes. [default: the number of cores, but at most 4]",
)
@click.option("--at", "name", metavar="REF", help="Serve the site as it was at a past commit, read-only.")
@click.option("--open", "opens", is_flag=True, help="Open the studio in a browser.")
@click.option(
    "--takeover",
    "takes_over",
    is_flag=True,
    help="Replace the running server of this site without dropping requests.",
)
@click.option("--quiet", is_flag=True, help="Print only the address and errors.")
@click.option("--verbose", is_flag=True, help="Print every file read or written, and every problem.")
@click.option(
    "--log",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="The log's format. With json, each line is a JSON object, and requests are logged too.",
)
@click.option("--reload", is_flag=True, hidden=True)
@click.make_pass_decorator(Timing, ensure=True)  # Tests set this by calling main(obj=Timing(...)).
@one_line_errors
def serve_command(
    timing: Timing,
    root: Path,
    host: str,
    port: int,
    workers: int | None,
    name: str | None,
    opens: bool,
    takes_over: bool,
    quiet: bool,
    verbose: bool,
    form: str,
    reload: bool,
) -> None:
    """Serve a site. Changed files are served without a restart."""
    terminal = _log(form, quiet=quiet, verbose=verbose)
    configuration = _read_configuration(root)
    commit = "" if name is None else find_commit(root, name)
    # At a past commit, changes to files have no effect.
    report_to = replace(terminal, quiet=True) if commit else terminal
    taken, listener = _listen(root, host, port, takes_over=takes_over)
    shared = SharedResources(ChangeLog(), listener, json_log=form == "json")

    @one_line_errors
    def first(generation: Generation) -> None:
        began = time.perf_counter()
        _print_accounts_notes(root, configuration.settings, terminal)
        with progress_bar("Reading files") as progress:
            opened = _open(root, commit, report_to, generation, timing, progress)
        if taken and not commit:
            opened.site.follow_predecessor(taken.is_running)
        seconds = time.perf_counter() - began
        ready = _ReadyMessage(opened, terminal, seconds, host, port, opens, taken, listener)
        count, report = worker_count(workers), partial(_report, report_to, opened.site)
        serve(opened, shared, generation, count, ready.start_printing(), report)

    def begin(generation: Generation) -> None:
        if generation.number == 1:
            first(generation)
        else:
            _serve_next(root, commit, workers, shared, report_to, generation, timing)

    return_large_blocks()
    with HostLease(root).held(is_needed=not commit) as renew:
        takeovers = TakeoverListener(root, port, listener)
        try:
            status = Generations(begin, shared.log.end_lag, takeovers, renew).run()
        finally:
            takeovers.remove()
    sys.exit(status)


def _read_configuration(root: Path) -> Configuration:
    check_site(root)
    configuration = recover_configuration(root)
    check_environment(configuration.settings.webhooks, os.environ)
    require_library(configuration.settings)
    require_driver(configuration.settings.accounts)
    return configuration


def _listen(
    root: Path, host: str, port: int, *, takes_over: bool
) -> tuple[TakenOverSocket | None, socket.socket]:
    """If `takes_over` is set and a server is running, return its socket. Otherwise, return a new one.

    For a new socket, the first value is None. Raises SetupError if the port can't be used.
    """
    # A server that has just started may not offer its socket yet.
    deadline = time.monotonic() + OFFER_TIMEOUT_S
    while True:
        taken = take_over(root, port) if takes_over else None
        if taken:
            return taken, taken.listener
        try:
            return None, bind(host, port)
        except SetupError:
            if not takes_over or time.monotonic() > deadline:
                raise
        time.sleep(OFFER_POLL_S)


def _serve_next(
    root: Path,
    commit: str,
    workers: int | None,
    shared: SharedResources,
    log: Log,
    generation: Generation,
    timing: Timing,
) -> None:
    loaded_after = shared.log.end
    try:
        opened = _open(root, commit, log, generation, timing, nice=NICENESS)
    # The file watcher reports the error, and reloads the site when the error has been fixed.
    except SetupError:
        return
    count, report = worker_count(workers), partial(_report, log, opened.site)
    serve(opened, shared, generation, count, _do_not_report, report, loaded_after)


def _open(
    root: Path,
    commit: str,
    log: Log,
    generation: Generation,
    timing: Timing,
    progress: Progress | None = None,
    nice: int = 0,
) -> OpenSite:
    """Open the site. If `commit` is not "", open it read-only at that past commit.

    Raises SetupError if the site or the commit can't be opened.
    """
    opened = open_site(
        root,
        Mode.READ if commit else Mode.SERVER,
        progress=progress,
        cores=cores(),
        nice=nice,
        report=partial(_report, log),
        request_reload=generation.request_reload,
        is_next_generation=generation.number > 1,
        timing=timing,
    )
    serve_commit(opened.past, commit)
    # Later, the running server records all changes.
    with opened.recording_changes() if generation.number == 1 else nullcontext():
        prepare_texts((opened.past.pinned or opened.site).state.snapshot)
    return opened


def _log(form: str, *, quiet: bool, verbose: bool) -> Log:
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose can't be combined.")
    return JsonLog(quiet) if form == "json" else Terminal(quiet=quiet, verbose=verbose)


def _print_accounts_notes(root: Path, settings: Settings, log: Log) -> None:
    if wrong := check_accounts(root, settings):
        log.warn(wrong)


def _do_not_report() -> None:
    pass


def _report(terminal: Log, site: Site, change: Change, seconds: float) -> None:
    # Leave out the problems that site.yaml ignores.
    ignores = site.state.settings.ignores
    problems, gone = (tuple(p for p in some if not ignores(p)) for some in (change.problems, change.fixed))
    if shown := replace(change, problems=problems, fixed=gone):
        terminal.print_change(shown, seconds)


@dataclass(frozen=True, slots=True)
class _ReadyMessage:
    """The message that is printed when a server is ready."""

    opened: OpenSite
    terminal: Log
    seconds: float
    host: str
    port: int
    opens_browser: bool
    previous_server: TakenOverSocket | None
    listener: socket.socket

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    def start_printing(self) -> Callable[[], None]:
        """Start a process that prints the message when the returned function is called."""
        # If the port was taken over from another server, the function also stops that server.
        forking = multiprocessing.get_context("fork")
        is_closed, ready = forking.Event(), forking.Event()
        forking.Process(target=_report_ready, args=(self, is_closed, ready), daemon=True).start()
        is_closed.wait(START_TIMEOUT_S)

        def is_ready() -> None:
            if self.previous_server:
                self.previous_server.answer()
            ready.set()

        return is_ready

    def studio_url(self) -> str:
        """Return a URL that signs in to the studio, or "" if no such URL should be printed."""
        # No URL is offered if other machines can reach the server, if it serves a past commit, or if nobody
        # would see the URL.
        site = self.opened.site
        at_machine = is_loopback(self.host) and not site.state.settings.api.trusted_proxies
        if self.opened.past.pinned or not at_machine or (self.terminal.quiet and not self.opens_browser):
            return ""
        try:
            return f"{self.url}studio?key={make_key(site.root)}"
        except OSError:  # The server itself reports problems with .bifolio.
            return ""


def _report_ready(message: _ReadyMessage, is_closed: Event, ready: Event) -> None:
    # This runs in a separate process, because reading documents copies memory pages. The copies are freed
    # when the process ends. The process closes the listening socket before the server accepts requests, so
    # that it can't keep the port in use after the server has stopped.
    message.listener.close()
    is_closed.set()
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not ready.wait(START_TIMEOUT_S):
        return
    site, held, studio = message.opened.site, message.opened.past.pinned, message.studio_url()
    if held:
        commit = (held.commit, *date_and_subject(site.root, held.commit))
        message.terminal.print_ready(held.state, [], message.seconds, message.url, commit)
    else:
        problems = [problem for problem in site.problems if not site.state.settings.ignores(problem)]
        shown = "" if message.terminal.quiet else studio
        message.terminal.print_ready(site.state, problems, message.seconds, message.url, studio=shown)
    if message.opens_browser:
        webbrowser.open(studio or f"{message.url}studio")
