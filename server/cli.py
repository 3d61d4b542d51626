"""The command line: `quire serve`, `quire token …`. Errors are one line and exit status 1."""

import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from server import __version__
from server.accounts import KINDS, Accounts, read_span
from server.content_types import read_content_types
from server.errors import SetupError
from server.serve import check_folder, check_port, serve
from server.settings import ACTIONS, read_settings
from server.site import Change, Site
from server.spelling import suggestion

SLOW_S = 1.0  # loading that takes longer shows a progress bar
SHOWN_PROBLEMS = 10

site_option = click.option(
    "--site",
    "root",
    type=click.Path(path_type=Path),
    envvar="QUIRE_SITE",
    default=".",
    show_default="$QUIRE_SITE, else this folder",
    help="The site's folder.",
)


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Print a SetupError as one line and end with status 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except SetupError as error:
            click.echo(f"quire: {error}", err=True)
            sys.exit(1)

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="quire")
def main() -> None:
    """A content server whose documents are files in git."""


@main.command("serve")
@site_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=1337, show_default=True, type=click.IntRange(1, 65535), help="The port.")
@click.option("--workers", default=1, type=click.IntRange(1), hidden=True)
@click.option("--reload", is_flag=True, hidden=True)
@one_line_errors
def serve_command(root: Path, host: str, port: int, workers: int, reload: bool) -> None:
    """Serve a site. Files that change are served changed, without a restart."""
    check_folder(root)
    check_port(host, port)
    began = time.perf_counter()
    site = Site(root)
    _load(site)
    seconds = time.perf_counter() - began
    serve(site, host, port, lambda: _report_ready(site, seconds, host, port), _report_change)


def _load(site: Site) -> None:
    """Load a site, with a progress bar on a terminal once that has taken SLOW_S."""
    began, bar = time.perf_counter(), None

    def progress(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and time.perf_counter() - began > SLOW_S and sys.stderr.isatty():
            bar = click.progressbar(length=total, label="Reading files", file=sys.stderr)
            bar.__enter__()
        if bar is not None:
            bar.update(done - bar.pos)

    try:
        site.load(progress)
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)


def _report_ready(site: Site, seconds: float, host: str, port: int) -> None:
    state = site.state
    counts = []
    for type_ in state.schema.content_types:
        found = state.snapshot.tables[type_.uid].versions
        count = len({document_id for document_id, _, _ in found})
        if count:
            counts.append(f"{count} {type_.plural if count != 1 else type_.singular}")
    files = len(state.snapshot.media)
    types = len(state.schema.content_types)
    click.echo(f"{state.settings.name}: {types} content type{'s' * (types != 1)}, read in {seconds:.2f} s")
    click.echo(f"  {', '.join(counts) or 'no documents yet'}" + (f", {files} uploads" if files else ""))
    _report_problems(site)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"  http://{shown}:{port}/api   (Ctrl-C stops it)")
    sys.stdout.flush()


def _report_problems(site: Site) -> None:
    problems = site.problems
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
    """One line for what changed under the running server, and one for each new problem."""
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


@main.group()
def token() -> None:
    """API tokens: make, list and revoke them."""


@token.command("create")
@click.argument("name")
@site_option
@click.option("--type", "kind", type=click.Choice(KINDS), required=True, help="What it may do.")
@click.option("--permission", "permissions", multiple=True, metavar="SUBJECT.ACTION", help="For custom ones.")
@click.option("--expires", metavar="SPAN", help="30d, 12h, 1y …; without it, never.")
@one_line_errors
def create_token(root: Path, name: str, kind: str, permissions: tuple[str, ...], expires: str | None) -> None:
    """Make a token and print it, once: only a hash of it is kept."""
    check_folder(root)
    settings = read_settings(root)
    _check_permissions(root, kind, permissions)
    try:
        span = read_span(expires) if expires else None
    except ValueError:
        raise SetupError(
            "--expires", None, f'"{expires}" is no span of time', "write 30d, 12h or 1y"
        ) from None
    accounts = Accounts(root, settings.accounts)
    made = accounts.create_token(name, kind, permissions, span)
    accounts.close()
    click.echo(f"The token {name} ({kind}). Keep it: it is not shown again.", err=True)
    click.echo(made)


def _check_permissions(root: Path, kind: str, permissions: tuple[str, ...]) -> None:
    if permissions and kind != "custom":
        raise SetupError(
            "--permission", None, f"a {kind} token has permissions of its own", "use --type custom"
        )
    if kind == "custom" and not permissions:
        raise SetupError(
            "--permission", None, "a custom token needs one", "such as --permission article.find"
        )
    subjects = [*(t.singular for t in read_content_types(root).content_types), *filter(None, ACTIONS)]
    for permission in permissions:
        subject, _, action = permission.rpartition(".")
        if subject not in subjects:
            mend = suggestion(subject, subjects) or "use the singular API id of a content type"
            raise SetupError("--permission", None, f'"{subject}" is no content type', mend)
        known = ACTIONS.get(subject, ACTIONS[""])
        if action not in known:
            mend = suggestion(action, known) or "use one of " + ", ".join(known)
            raise SetupError("--permission", None, f'"{action}" is no action of {subject}', mend)


@token.command("list")
@site_option
@one_line_errors
def list_tokens(root: Path) -> None:
    """List the tokens: names, what they may do, and until when."""
    check_folder(root)
    accounts = Accounts(root, read_settings(root).accounts)
    for found in accounts.tokens():
        until = f"until {found.expires_at}" if found.expires_at else "for ever"
        state = " (expired)" if found.expired else ""
        may = " ".join(found.permissions)
        click.echo(f"{found.name}  {found.kind}  {until}{state}" + (f"  {may}" if may else ""))
    accounts.close()


@token.command("revoke")
@click.argument("name")
@site_option
@one_line_errors
def revoke_token(root: Path, name: str) -> None:
    """Revoke a token: the next request that carries it is refused."""
    check_folder(root)
    accounts = Accounts(root, read_settings(root).accounts)
    known = [found.name for found in accounts.tokens()]
    done = accounts.revoke_token(name)
    accounts.close()
    if not done:
        mend = suggestion(name, known) or "quire token list shows those that there are"
        raise SetupError("token", None, f'there is no token named "{name}"', mend)
    click.echo(f"revoked {name}")
