"""`quire serve`: serves a site, and reports on the terminal what it reads and what is wrong."""

import multiprocessing
import signal
import sys
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Event
from pathlib import Path

import click

from server.api.wsgi_server import check_accounts, check_port, serve, worker_count
from server.problems import Problem
from server.site.loading import cores
from server.site.site import Change, Site
from server.terminal import check_site, one_line_errors, progress_bar, site_option

SHOWN_PROBLEMS = 10
LONGEST_START_S = 60.0  # A server that is not ready then has other troubles, and tells of them.


@click.command("serve")
@site_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=1337, show_default=True, type=click.IntRange(1, 65535), help="The port.")
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Processes that answer. [default: the cores, up to 4]"
)
@click.option("--reload", is_flag=True, hidden=True)
@one_line_errors
def serve_command(root: Path, host: str, port: int, workers: int | None, reload: bool) -> None:
    """Serve a site. Files that change are served changed, without a restart."""
    check_site(root)
    check_port(host, port)
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
    forking.Process(target=_report_ready, args=(site, seconds, host, port, ready), daemon=True).start()
    serve(site, (host, port), count, ready.set, _report_change)


def _report_ready(site: Site, seconds: float, host: str, port: int, ready: Event) -> None:
    """Print what there is and what is wrong with it, once a worker is ready.

    It looks at every document, which makes a copy of the memory that they take. So it runs in a process of
    its own, whose copy is gone when it ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not ready.wait(LONGEST_START_S):
        return
    state = site.state
    counts = []
    for type_ in state.schema.content_types:
        found = state.snapshot.tables[type_.uid].versions
        count = len({document_id for document_id, _, _ in found})
        if count:
            counts.append(f"{count} {type_.plural if count != 1 else type_.singular}")
    files = len(state.snapshot.media)
    types = len(state.schema.content_types)
    problems = site.problems
    click.echo(f"{state.settings.name}: {types} content type{'s' * (types != 1)}, read in {seconds:.2f} s")
    click.echo(f"  {', '.join(counts) or 'no documents yet'}" + (f", {files} uploads" if files else ""))
    _report_problems(problems)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"  http://{shown}:{port}/   (Ctrl-C stops it)")
    sys.stdout.flush()


def _report_problems(problems: Sequence[Problem]) -> None:
    errors = [p for p in problems if p.severity == "error"]
    for problem in errors[:SHOWN_PROBLEMS]:
        click.secho(f"  ✗ {problem}", fg="red")
    if len(errors) > SHOWN_PROBLEMS:
        click.echo(f"  … and {len(errors) - SHOWN_PROBLEMS} more files that can't be served")
    warnings = len(problems) - len(errors)
    if warnings:
        first = next(p for p in problems if p.severity == "warning")
        more = f" and {warnings - 1} more" if warnings > 1 else ""
        click.secho(f"  ! {first}{more}", fg="yellow")


def _report_change(change: Change, seconds: float) -> None:
    """Print one line for a change that the running server took over, and one for each new problem."""
    parts = []
    if change.reloaded:
        parts.append("site.yaml or a content type changed")
    for paths, what in ((change.read, "read"), (change.removed, "removed")):
        if len(paths) == 1:
            parts.append(f"{what} {paths[0]}")
        elif paths:
            parts.append(f"{what} {len(paths)} files")
    if parts:
        click.echo(f"  ↻ {', '.join(parts)} ({seconds * 1000:.0f} ms)")
    for problem in change.problems[:SHOWN_PROBLEMS]:
        error = problem.severity == "error"
        click.secho(f"  {'✗' if error else '!'} {problem}", fg="red" if error else "yellow")
    sys.stdout.flush()
