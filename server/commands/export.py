"""`bifolio export`."""

import time
from contextlib import nullcontext
from pathlib import Path

import click

from server.errors import SetupError, with_fix
from server.service.opening import Mode, open_site
from server.site.site import Site
from server.storage.git.refs import date_and_subject
from server.storage.git.repository import is_shallow
from server.tools.export.folder import check_target
from server.tools.export.run import ExportOptions, ExportResult, export
from server.tools.terminal import (
    check_site,
    find_commit,
    one_line_errors,
    past_site,
    printable,
    progress_bar,
    site_option,
)

MAX_SHOWN_PROBLEMS = 10


@click.command("export")
@click.argument("target", metavar="DIR", type=click.Path(path_type=Path))
@site_option
@click.option("--at", "name", metavar="REF", help="Export the site as it was at a past commit.")
@click.option(
    "--role", default="public", show_default=True, help="Export the documents that this role can read."
)
@click.option("--everything", is_flag=True, help="Export all documents that a read-only token can read.")
@click.option("--drafts", is_flag=True, help="Export drafts instead of published versions.")
@click.option(
    "--base-url",
    default="",
    metavar="URL",
    help="The URL of the website, which is put before the paths of media files.",
)
@click.option("--images", is_flag=True, help="Write the images of media.formats as files.")
@click.option("--skip-broken", is_flag=True, help="Skip content files that can't be read.")
@click.option("--force", is_flag=True, help="Write to DIR even if it contains other files.")
@one_line_errors
def export_command(
    root: Path,
    target: Path,
    name: str | None,
    role: str,
    everything: bool,
    drafts: bool,
    base_url: str,
    images: bool,
    skip_broken: bool,
    force: bool,
) -> None:
    """Export the API to DIR as static files that any web server can serve.

    A repeated export writes only changed files and removes obsolete ones (docs/static.md).
    """
    began = time.perf_counter()
    check_site(root)
    commit = "" if name is None else find_commit(root, name)
    options = ExportOptions(role, everything, drafts, base_url, force, commit, images)
    if commit:
        check_target(target, Site(root))
    with past_site(root, commit) if commit else nullcontext(root) as folder:
        with progress_bar("Reading files") as reading:
            site = open_site(folder, Mode.READ, progress=reading).site
        _require_valid_files(site, root, skip_broken)
        done = export(site, target, options, progress_bar)
        _report(site, options, target, done, time.perf_counter() - began)


def _require_valid_files(site: Site, root: Path, skip_broken: bool) -> None:
    # Documents in files with errors would be missing from the export.
    errors = [problem for problem in site.problems if problem.severity == "error"]
    for problem in errors[:MAX_SHOWN_PROBLEMS]:
        click.secho(f"  ✗ {problem}", fg="red", err=True)
    if len(errors) > MAX_SHOWN_PROBLEMS:
        click.echo(
            f"  … and {len(errors) - MAX_SHOWN_PROBLEMS} more; run `bifolio check` to list them", err=True
        )
    if errors and not skip_broken:
        problems = f"{len(errors)} problem{'s' * (len(errors) != 1)}"
        what = f"{problems} must be fixed before the site can be exported"
        raise SetupError(str(root.resolve()), None, what, "fix the problems, or pass --skip-broken")


def _report(site: Site, options: ExportOptions, target: Path, result: ExportResult, seconds: float) -> None:
    state, file_counts = site.state, result.counts
    counts = []
    for uid, count in result.documents.items():
        type_ = state.schema.types[uid]
        counts.append(f"{count} {type_.plural if count != 1 else type_.singular}")
    who = "a read-only token" if options.everything else f"the role {options.role}"
    drafts = ", with drafts" if options.drafts else ""
    click.echo(f"{state.settings.name}, as {who} sees it{drafts} → {target}")
    if options.commit:
        date, subject = date_and_subject(site.root, options.commit)
        click.echo(f"  as it was at commit {options.commit[:10]} of {date}: {printable(subject)}")
    if result.file_count:
        counts.append(f"{result.file_count} media file{'s' * (result.file_count != 1)}")
    click.echo(f"  {', '.join(counts) or 'nothing'}")
    if result.unreadable_types:
        click.echo(
            f"  left out, because the permission find is missing: {', '.join(result.unreadable_types)}"
        )
    if is_shallow(site.root):
        _warn("the clone is shallow, so createdAt and updatedAt are wrong", "run `git fetch --unshallow`")
    if result.unscaled_count:
        images = f"{result.unscaled_count} image{'s' * (result.unscaled_count != 1)}"
        what = f"no resized variants could be created for {images}"
        _warn(what, "check whether the images are damaged, and check the permissions of .bifolio/")
    if result.failed_image_count:
        urls = "its URL does" if result.failed_image_count == 1 else "their URLs do"
        what = (
            f"{result.failed_image_count} of the images that media.formats defines could not be created, "
            f"so {urls} not work"
        )
        _warn(what, "check whether the images are damaged, and check the permissions of .bifolio/")
    if result.invalid_alias_count:
        aliases = f"{result.invalid_alias_count} alias{'es' * (result.invalid_alias_count != 1)}"
        _warn(
            f"no redirects could be generated from {aliases}",
            "run `bifolio redirects` to see the reasons",
        )
    if unsupported := result.unsupported_redirect_count:
        redirects = f"{unsupported} redirect{'s' * (unsupported != 1)}"
        _warn(
            f"{redirects} can't be written in a format that export.redirects sets",
            "to see which ones, run `bifolio redirects --format FORMAT` for each of these formats",
        )
    total = file_counts.written + file_counts.unchanged
    click.echo(
        f"  {total} files, {file_counts.total_bytes / 1e6:.1f} MB: {file_counts.written} written, "
        f"{file_counts.unchanged} unchanged, {file_counts.removed} removed ({seconds:.2f} s)"
    )


def _warn(what: str, fix: str) -> None:
    click.secho(f"  ! {with_fix(what, fix)}", fg="yellow")
