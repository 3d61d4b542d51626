"""`quire serve`: serves a site, and reports on the terminal what it reads and what is wrong."""

import multiprocessing
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path

import click

from server.api.serving.generations import Generation, Generations
from server.api.wsgi_server import Shared, bind, check_accounts, serve, worker_count
from server.commands.announce import Terminal
from server.errors import SetupError
from server.site.change import Change
from server.site.change_log import ChangeLog
from server.site.configure import configure
from server.site.loading import NICE, cores
from server.site.site import Site
from server.tools.terminal import check_site, one_line_errors, progress_bar, site_option

LONGEST_START_S = 60.0  # A server that is not ready then has other troubles, and tells of them.


@click.command("serve")
@site_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=1337, show_default=True, type=click.IntRange(1, 65535), help="The port.")
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Processes that answer. [default: the cores, up to 4]"
)
@click.option("--quiet", is_flag=True, help="Print the address and errors alone.")
@click.option("--verbose", is_flag=True, help="Print every file that is read or written, and every problem.")
@click.option("--reload", is_flag=True, hidden=True)
@one_line_errors
def serve_command(
    root: Path, host: str, port: int, workers: int | None, quiet: bool, verbose: bool, reload: bool
) -> None:
    """Serve a site. Files that change are served changed, without a restart."""
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    terminal = Terminal(quiet=quiet, verbose=verbose)
    check_site(root)
    configure(root)  # so that what is broken is told before anything begins
    shared = Shared(ChangeLog(), bind(host, port))

    @one_line_errors
    def first(generation: Generation) -> None:
        began = time.perf_counter()
        site = Site(root)
        if unusable := check_accounts(site):
            click.secho(f"  ✗ {unusable}; until that is repaired, nobody can log in", fg="red")
        site.recover()
        with progress_bar("Reading files") as progress:
            site.load(progress, cores())
        seconds = time.perf_counter() - began
        count = worker_count(workers, site.state.settings)
        if workers and count < workers:
            click.echo("api.rate_limit is set, and each worker would count for itself: serving with one")
        forking = multiprocessing.get_context("fork")
        ready = forking.Event()
        reported = (site, terminal, seconds, host, port, ready)
        forking.Process(target=_report_ready, args=reported, daemon=True).start()
        serve(site, shared, generation, count, ready.set, partial(_report, site, terminal))

    def next_one(generation: Generation) -> None:
        try:
            site = Site(root)
            site.load(cores=cores(), nice=NICE)
        except SetupError:  # Who watches the files will tell, and ask again when it is repaired.
            return
        count = worker_count(workers, site.state.settings)
        serve(site, shared, generation, count, _nothing, partial(_report, site, terminal))

    def begin(generation: Generation) -> None:
        (first if generation.number == 1 else next_one)(generation)

    sys.exit(Generations(begin, shared.log.end_lag).run())


def _nothing() -> None:
    """What follows when a later generation is ready."""


def _report(site: Site, terminal: Terminal, change: Change, seconds: float) -> None:
    """Print what a change came to, without the problems that site.yaml leaves out."""
    ignores = site.state.settings.ignores
    problems, gone = (tuple(p for p in some if not ignores(p)) for some in (change.problems, change.fixed))
    if shown := replace(change, problems=problems, fixed=gone):
        terminal.change(shown, seconds)


def _report_ready(site: Site, terminal: Terminal, seconds: float, host: str, port: int, ready: Event) -> None:
    """Print what there is and what is wrong with it, once a worker is ready.

    It looks at every document, which makes a copy of the memory that they take. So it runs in a process of
    its own, whose copy is gone when it ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not ready.wait(LONGEST_START_S):
        return
    shown = f"[{host}]" if ":" in host else host
    problems = [problem for problem in site.problems if not site.state.settings.ignores(problem)]
    terminal.ready(site.state, problems, seconds, f"http://{shown}:{port}/")
