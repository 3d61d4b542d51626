"""`bifolio check`."""

import os
import sys
import time
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from server.problems import in_order
from server.service.opening import Mode, OpenSite, open_site
from server.site.check.branch_changes import changes_since
from server.site.check.branch_survey import survey_changes
from server.site.check.bucket import find_missing_objects
from server.site.check.survey import survey
from server.site.site import Site
from server.tools.check import FORMATS, report
from server.tools.merge_driver.install import is_config_missing
from server.tools.terminal import (
    check_site,
    one_line_errors,
    print_lines,
    progress_bar,
    site_option,
)

# This is a note instead of a warning, because `--strict` must not fail in CI if the driver is not installed.
NOT_INSTALLED = (
    "Bifolio's merge driver is not installed in this clone, although .gitattributes names it, so git merges "
    "documents line by line. Run `bifolio merge-driver install`."
)


@click.command("check")
@site_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", *FORMATS]),
    default="text",
    help="The format of the output.",
)
@click.option("--strict", is_flag=True, help="Also exit with status 1 on warnings.")
@click.option("--translations", is_flag=True, help="Also report documents that are missing in a locale.")
@click.option("--all", "every", is_flag=True, help="List every problem, instead of a few examples per cause.")
@click.option("--media", is_flag=True, help="Also report media files that are missing from the bucket.")
@click.option(
    "--changed",
    "since",
    metavar="BRANCH",
    help="Report only problems in files that have changed since BRANCH, and problems that "
    "these changes cause in other files.",
)
@click.option("--fix", is_flag=True, help="Fix problems that have one obvious solution.")
@click.option("--dry-run", is_flag=True, help="With --fix, show the changes without making them.")
@one_line_errors
def check(
    root: Path,
    format_: str,
    strict: bool,
    translations: bool,
    every: bool,
    media: bool,
    since: str | None,
    fix: bool,
    dry_run: bool,
) -> None:
    """Report problems in a site's content and schemas, with positions and suggested fixes.

    Exits with status 1 if there are errors.
    """
    check_site(root)
    began = time.perf_counter()
    prefix, text = _site_prefix(root), format_ == "text"
    mode = Mode.COMMAND if fix and not dry_run else Mode.READ
    opening = _SiteOpener(root, mode)
    if since is not None and (fix or media):
        raise click.UsageError("--changed can't be used together with --fix or --media.")
    survey_files = (
        None if since is None else partial(survey_changes, changes=changes_since(root.resolve(), since))
    )
    run_survey = partial(survey, root, opening, translations=translations, check_site=survey_files)
    fixing: Any = import_module("server.commands.fix") if fix else None
    if fix and not dry_run:
        survey_again = lambda: (run_survey(), opening.opened)  # noqa: E731
        found = fixing.fix_problems(root, survey_again, prefix, text=text, translations=translations)
    else:
        found = run_survey()
        if fix:
            fixing.show_changes(root, found, prefix)
    if media and found.site is not None:
        found = replace(found, problems=in_order((*found.problems, *find_missing_objects(found.site))))
    if text:
        print_lines(report(found, prefix, time.perf_counter() - began, list_all=every))
    elif told := FORMATS[format_](found, prefix):
        click.echo(told)
    if found.unchecked_relations:
        click.echo(f"! {found.unchecked_relations}", err=True)
    if text and is_config_missing(root.resolve()):
        click.echo(f"! {NOT_INSTALLED}", err=True)
    sys.exit(1 if found.errors or (strict and found.warnings) else 0)


class _SiteOpener:
    """Callable that opens the site and keeps it in `opened`."""

    def __init__(self, root: Path, mode: Mode) -> None:
        self._root, self._mode = root, mode
        self.opened: OpenSite | None = None

    def __call__(self) -> Site:
        with progress_bar("Reading files") as progress:
            self.opened = open_site(self._root, self._mode, progress=progress)
        return self.opened.site


def _site_prefix(root: Path) -> str:
    """Return the site's path with a trailing slash, or "" if the site is the current folder."""
    there = os.path.relpath(root.resolve(), Path.cwd())
    if there == ".":
        return ""
    return f"{root.resolve()}/" if there.startswith("..") else f"{there}/"
