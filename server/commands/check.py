"""`quire check`: the command."""

import difflib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from server.errors import ApiError, SetupError
from server.paths import state_folder
from server.problems import in_order
from server.site.check.bucket import missing_objects
from server.site.check.fixes import FixResult, Repair, apply_fixes, find_fixes
from server.site.check.key_fixes import KeyFix, key_fix_writes
from server.site.check.survey import Survey, look, survey
from server.site.loading import Progress
from server.storage.journal import Journal
from server.tools.check.formats import FORMATS
from server.tools.check.report import fixed, report
from server.tools.terminal import check_site, one_line_errors, printable, progress_bar, show, site_option

MOST_KEYS = 1000  # of the configuration that one --fix fixes


@click.command("check")
@site_option
@click.option(
    "--format", "format_", type=click.Choice(["text", *FORMATS]), default="text", help="How to say it."
)
@click.option("--strict", is_flag=True, help="Fail on warnings as well.")
@click.option("--translations", is_flag=True, help="Warn of documents that a locale does not have.")
@click.option("--media", is_flag=True, help="Ask the bucket whether it has all media.")
@click.option("--fix", is_flag=True, help="Fix what can be fixed without a decision.")
@click.option("--dry-run", is_flag=True, help="With --fix: show what would change, and change nothing.")
@one_line_errors
def check(
    root: Path, format_: str, strict: bool, translations: bool, media: bool, fix: bool, dry_run: bool
) -> None:
    """Say everything that is wrong with a site: where, what, and how to fix it.

    The status is 1 where there are errors (with --strict, also where there are warnings).
    """
    check_site(root)
    began = time.perf_counter()
    prefix, text = _prefix(root), format_ == "text"
    found = survey(root, _load, translations=translations)
    if fix and dry_run:
        _show_changes(root, found, prefix)
    elif fix:
        keys: tuple[KeyFix, ...] = ()
        while found.key_fixes and len(keys) < MOST_KEYS:  # What is below a key is known once the key is.
            _fix_keys(root, found.key_fixes, prefix, text=text)
            keys += found.key_fixes
            found = survey(root, _load, translations=translations)
        found = replace(found, fixed=keys)
        found = _fix(found, prefix, text=text, translations=translations)
    if media and found.site is not None:
        found = replace(found, problems=in_order((*found.problems, *missing_objects(found.site))))
    if text:
        show(report(found, prefix, time.perf_counter() - began))
    elif told := FORMATS[format_](found, prefix):
        click.echo(told)
    if found.unseen:
        click.echo(f"! {found.unseen}", err=True)
    sys.exit(1 if found.errors or (strict and found.warnings) else 0)


def _load(load: Callable[[Progress], None]) -> None:
    with progress_bar("Reading files") as progress:
        load(progress)


def _prefix(root: Path) -> str:
    """The path from the current folder to the site: "", or a path that ends in a slash."""
    there = os.path.relpath(root.resolve(), Path.cwd())
    if there == ".":
        return ""
    return f"{root.resolve()}/" if there.startswith("..") else f"{there}/"


def _fix_keys(root: Path, fixes: tuple[KeyFix, ...], prefix: str, *, text: bool) -> None:
    """Fix what is mistyped in site.yaml and schema files, and report it."""
    journal = Journal(root, state_folder(root))
    try:
        with journal.writing():
            journal.commit(key_fix_writes(root, fixes))
    except ApiError as error:
        raise SetupError("--fix", None, error.message, "nothing was changed") from error
    if text:
        show(fixed(FixResult(fixes, {}), prefix))


def _fix(found: Survey, prefix: str, *, text: bool, translations: bool) -> Survey:
    """Fix what can be fixed, report it, and check the site again."""
    if found.site is None or found.audit is None:
        return found
    repair = Repair(found.audit, tuple(find_fixes(found.audit)))
    if not repair.fixes:
        return found
    try:
        _, done = found.site.write(apply_fixes, repair)
    except ApiError as error:
        raise SetupError("--fix", None, error.message, "nothing was changed") from error
    if text:
        show(fixed(done, prefix))
    return replace(look(found.site, translations=translations), fixed=(*found.fixed, *done.fixes))


def _show_changes(root: Path, found: Survey, prefix: str) -> None:
    """Print what --fix would change, as a diff."""
    writes = key_fix_writes(root, found.key_fixes)
    if found.site is not None and found.audit is not None:
        repair = Repair(found.audit, tuple(find_fixes(found.audit)))
        writes += found.site.preview(apply_fixes, repair)[0]
    for write in sorted(writes, key=lambda write: write.path):
        before = (root / write.path).read_bytes().decode().splitlines(keepends=True)
        after = (write.data or b"").decode().splitlines(keepends=True)
        path = prefix + write.path
        for line in difflib.unified_diff(before, after, path, path, n=0):
            click.echo(printable(line.rstrip("\r\n")))
