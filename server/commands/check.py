"""`quire check`: the command."""

import difflib
import os
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from server.problems import in_order
from server.service.authorship import command_authorship
from server.service.opening import Mode, open_site
from server.site.check.bucket import missing_objects
from server.site.check.fixes import (
    FixResult,
    KeyFix,
    Repair,
    apply_fixes,
    apply_key_fixes,
    find_fixes,
    key_fix_writes,
    repair_configuration,
)
from server.site.check.survey import Survey, look, survey
from server.site.site import Site
from server.tools.check import FORMATS, fixed, report
from server.tools.terminal import (
    check_site,
    one_line_errors,
    printable,
    progress_bar,
    refused_in_one_line,
    show,
    site_option,
    tell_commit,
)

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
    mode = Mode.COMMAND if fix and not dry_run else Mode.READ
    look_at_all = partial(survey, root, partial(_open, root, mode), translations=translations)
    found = look_at_all()
    if fix and dry_run:
        _show_changes(root, found, prefix)
    elif fix:
        keys: tuple[KeyFix, ...] = ()
        while found.key_fixes and len(keys) < MOST_KEYS:  # What is below a key is known once the key is.
            _fix_keys(root, found, prefix, text=text)
            keys += found.key_fixes
            found = look_at_all()
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


def _open(root: Path, mode: Mode) -> Site:
    with progress_bar("Reading files") as progress:
        return open_site(root, mode, progress=progress).site


def _prefix(root: Path) -> str:
    """The path from the current folder to the site: "", or a path that ends in a slash."""
    there = os.path.relpath(root.resolve(), Path.cwd())
    if there == ".":
        return ""
    return f"{root.resolve()}/" if there.startswith("..") else f"{there}/"


def _fix_keys(root: Path, found: Survey, prefix: str, *, text: bool) -> None:
    """Fix what is mistyped in site.yaml and schema files, and report it."""
    fixes = found.key_fixes
    with refused_in_one_line("--fix"):
        if found.site is None:
            repair_configuration(root, fixes)
        else:
            by = command_authorship(found.site, lambda _: _message(len(fixes)))
            tell_commit(found.site.write(by, apply_key_fixes, fixes)[2])
    if text:
        show(fixed(FixResult(fixes, {}), prefix))


def _message(count: int) -> str:
    return f"Fix {count:,} problem{'s' * (count != 1)}"


def _fix(found: Survey, prefix: str, *, text: bool, translations: bool) -> Survey:
    """Fix what can be fixed, report it, and check the site again."""
    if found.site is None or found.audit is None:
        return found
    repair = Repair(found.audit, tuple(find_fixes(found.audit)))
    if not repair.fixes:
        return found
    by = command_authorship(found.site, lambda done: _message(len(done.fixes)))
    with refused_in_one_line("--fix"):
        _, done, commit = found.site.write(by, apply_fixes, repair)
    tell_commit(commit)
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
