"""`bifolio media`."""

import sys
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from server.config.reader import read_settings
from server.errors import SetupError
from server.service.authorship import caller_of_command, writes_of_command
from server.service.images.parameters import url_problem
from server.service.images.signatures import sign_url
from server.service.media.bucket_transfer import TransferResult, pull, push
from server.service.opening import Mode, OpenSite, open_site
from server.site.site import Site
from server.storage.bucket.opening import open_bucket
from server.tools.media_garbage import GRACE_PERIOD, delete_garbage, find_garbage
from server.tools.terminal import (
    as_setup_error,
    check_site,
    one_line_errors,
    print_commit_note,
    printable,
    progress_bar,
    site_option,
)

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket

_one_line = partial(as_setup_error, "media", "the files moved so far stay moved; run the command again")
_GRACE_HOURS = int(GRACE_PERIOD.total_seconds() // 3600)


@click.group("media")
def media() -> None:
    """Move media files to or from a bucket; remove unused objects; sign image URLs."""


@media.command("sign")
@site_option
@click.argument("url")
@one_line_errors
def sign_command(root: Path, url: str) -> None:
    """Print the signed URL of a transformed image.

    Sites that set media.transform.sign transform images only for signed URLs. If the server would reject the
    signed URL, a line on stderr says why.
    """
    check_site(root)
    click.echo(sign_url(root, url))
    with suppress(SetupError):  # The server reports an error in site.yaml when it starts.
        if problem := url_problem(root, read_settings(root).media, url):
            click.echo(f"Note: {printable(problem)}", err=True)


@media.command("push")
@site_option
@click.option("--keep", is_flag=True, help="Keep the local files after they have been copied.")
@one_line_errors
def push_command(root: Path, keep: bool) -> None:
    """Move the site's media files into its bucket.

    Each file is removed from content/uploads/ after its copy in the bucket has been verified. If the command
    is interrupted, run it again. You don't need to stop the server.
    """
    opened, bucket = _open(root, Mode.COMMAND)
    writes, caller = writes_of_command(opened), caller_of_command(opened)
    with _one_line(), progress_bar("Moving files") as progress:
        moved = push(writes, caller, bucket, progress, keep=keep)
    _report_moved(moved, "copied to" if keep else "moved to", opened.site)


@media.command("pull")
@site_option
@one_line_errors
def pull_command(root: Path) -> None:
    """Move the site's media files from its bucket into content/uploads/.

    The objects stay in the bucket, because earlier commits refer to them. You don't need to stop the server.
    """
    opened, bucket = _open(root, Mode.COMMAND)
    writes, caller = writes_of_command(opened), caller_of_command(opened)
    with _one_line(), progress_bar("Moving files") as progress:
        moved = pull(writes, caller, bucket, progress)
    _report_moved(moved, "moved from", opened.site)


@media.command("gc")
@site_option
@click.option("--dry-run", is_flag=True, help="List the unused objects without removing them.")
@click.option(
    "--grace",
    default=_GRACE_HOURS,
    show_default=True,
    type=click.IntRange(min=_GRACE_HOURS),
    metavar="HOURS",
    help="Keep unused objects that are younger than this number of hours.",
)
@one_line_errors
def gc_command(root: Path, dry_run: bool, grace: int) -> None:
    """Remove objects that no file on disk and no commit on any branch refers to.

    Fetches all branches of all remotes first. It can't see commits that another machine has not pushed yet.
    If a machine can take longer than a day to push, raise --grace.
    """
    opened, bucket = _open(root, Mode.READ)
    with _one_line():
        found = find_garbage(opened.site.root, bucket, timedelta(hours=grace))
        if dry_run:
            for one in found.unreferenced:
                click.echo(f"{one.key}  {one.size:,} bytes")
        else:
            with progress_bar("Removing objects") as progress:
                delete_garbage(bucket, found, progress, timedelta(hours=grace))
    did = "would be removed" if dry_run else "removed"
    click.echo(
        f"{found.objects:,} objects: {found.referenced:,} used, {found.recent:,} too recent,"
        f" {len(found.unreferenced):,} {did} ({_size(found.bytes)})"
    )


def _open(root: Path, mode: Mode) -> tuple[OpenSite, "Bucket"]:
    check_site(root)
    opened = open_site(root, mode)
    settings = opened.site.state.settings
    if not settings.media.store:
        raise SetupError(
            "site.yaml", None, "media.store is missing", "set media.store to the URL of a bucket"
        )
    bucket = open_bucket(settings, long_timeouts=True)
    bucket.check()
    return opened, bucket


def _report_moved(moved: TransferResult, verb: str, site: Site) -> None:
    store = site.state.settings.media.store
    click.echo(f"{moved.file_count:,} files {verb} {store} ({_size(moved.byte_count)})")
    print_commit_note(moved.commit)
    for path, why in moved.unmoved:
        click.echo(printable(f"{path}: {why}"), err=True)
    if moved.unmoved:
        sys.exit(1)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} bytes"
