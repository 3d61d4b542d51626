"""Functions that several subcommands share, for example for errors and progress bars."""

import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import click

from server.errors import (
    ApiError,
    BucketError,
    BusyError,
    NotServedError,
    SetupError,
    StorageError,
    UnconfirmedPushError,
)
from server.history.past import PastStates
from server.history.resolve_commit import resolve_commit_name
from server.paths import SETTINGS, TYPES, cache_folder, state_folder
from server.site.commits.committing import PENDING
from server.storage.git.checkout import temporary_checkout
from server.storage.git.command import git
from server.storage.git.log import CommitLog
from server.storage.git.refs import head_commit
from server.storage.images.cache import ImageCache
from server.tools.former_folder import rename_former_folder

PROGRESS_DELAY_S = 1.0

# arguments for click.style
Style = Mapping[str, Any]
Part = tuple[str, Style]

site_option = click.option(
    "--site",
    "root",
    type=click.Path(path_type=Path),
    envvar="BIFOLIO_SITE",
    default=".",
    show_default="$BIFOLIO_SITE, else this folder",
    help="The site's folder.",
)


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command so that it prints an expected error on one line and exits with status 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (SetupError, StorageError, BusyError) as error:
            click.echo(f"bifolio: {error}", err=True)
            sys.exit(1)

    return run


@contextmanager
def as_setup_error(subject: str, consequence: str = "nothing was changed") -> Iterator[None]:
    """Convert the error of a rejected write to a SetupError.

    `consequence` tells the user how the rejected write has affected the site.
    """
    try:
        yield
    except (BusyError, BucketError):
        raise
    except (
        NotServedError,
        UnconfirmedPushError,
    ) as error:  # The remote may have accepted the write, so do not claim that nothing changed.
        raise SetupError(subject, None, error.message) from error
    except ApiError as error:
        raise SetupError(subject, None, error.message, consequence) from error


def print_commit_note(commit: str) -> None:
    if commit == PENDING:
        click.echo(
            "! the change is not committed yet; the running server of the site will commit it", err=True
        )


def check_folder(root: Path) -> None:
    if not root.is_dir():
        raise SetupError(str(root), None, "the folder does not exist", "pass the site's folder with --site")


def check_site(root: Path) -> None:
    """Raise SetupError if a folder is not a site, or GitError if git fails.

    If the state folder still has its former name, it is renamed.
    """
    check_folder(root)
    if (root / "site.yaml").exists() or (root / "content-types").is_dir():
        if message := rename_former_folder(root):
            click.echo(message, err=True)
        return
    place = "this folder" if root == Path() else str(root)
    if head_commit(root) and git(root, "ls-tree", "HEAD", "--", "site.yaml", "content-types"):
        wrong, fix = "the site's files are in git, but are not checked out", "run `git checkout HEAD -- .`"
        raise SetupError(place, None, wrong, fix)
    missing = "site.yaml and content-types/ are missing"
    raise SetupError(f"{place} is not a site", None, missing, "create a site with `bifolio init`")


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that updates a progress bar.

    The bar appears after PROGRESS_DELAY_S seconds, and only if standard error is a terminal.
    """
    began, bar = time.perf_counter(), None

    def progress(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and time.perf_counter() - began > PROGRESS_DELAY_S and sys.stderr.isatty():
            bar = click.progressbar(length=total, label=label, file=sys.stderr)
            bar.__enter__()
        if bar is not None:
            bar.update(done - bar.pos)

    try:
        yield progress
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)


def print_lines(lines: Iterable[list[Part]]) -> None:
    colour = False if os.environ.get("NO_COLOR") else True if os.environ.get("FORCE_COLOR") else None
    for parts in lines:
        click.echo("".join(click.style(text, **style) for text, style in parts), color=colour)


def printable(text: str) -> str:
    return "".join(c if unicodedata.category(c)[0] != "C" else ascii(c)[1:-1] for c in text)


# --- past -----------------------------------------------------------------------------------------


def find_commit(root: Path, name: str) -> str:
    """Return the id of the commit `name`, the value of `--at`. Raises SetupError if it is not found."""
    try:
        return resolve_commit_name(root, CommitLog(root, cache_folder(root)), name)
    except ApiError as error:
        raise SetupError("--at", None, printable(error.message)) from error


def serve_commit(past: PastStates, commit: str) -> None:
    """Serve the site as it was at a commit. If `commit` is "", do nothing.

    Raises SetupError if the commit can't be served.
    """
    try:
        if commit:
            past.pin(commit)
    except ApiError as error:
        raise SetupError("--at", None, printable(error.message)) from error


@contextmanager
def past_site(root: Path, commit: str) -> Iterator[Path]:
    """Yield the folder of a temporary clone of the site at a commit. It includes the current resized images.

    Raises SetupError if the commit contains no site, or StorageError if the commit can't be checked out.
    """
    with temporary_checkout(root, commit) as folder:
        if not (folder / SETTINGS).exists() and not (folder / TYPES).is_dir():
            raise SetupError("--at", None, f"commit {commit[:10]} does not contain a site")
        with suppress(OSError):
            formats = ImageCache(root).folder
            shutil.copytree(formats, state_folder(folder) / formats.name, copy_function=_link)
        yield folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # Copy the file, because the target might be on a different disk.
        shutil.copy2(source, target)
