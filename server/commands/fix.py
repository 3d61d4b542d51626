"""`bifolio check --fix`."""

import difflib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from server.service.authorship import caller_of_command, writes_of_command
from server.service.opening import OpenSite
from server.service.problems import fix_documents, fix_keys
from server.site.check.fixes import (
    FixRequest,
    FixResult,
    KeyFix,
    apply_fixes,
    find_fixes,
    key_fix_writes,
    repair_configuration,
)
from server.site.check.survey import Survey, survey_site
from server.tools.check import fix_lines
from server.tools.terminal import as_setup_error, print_commit_note, print_lines, printable

MAX_FIXED_KEYS = 1000
# Checks the site. Also returns the open site, or None if its configuration is invalid.
RunSurvey = Callable[[], tuple[Survey, OpenSite | None]]


def fix_problems(root: Path, run_survey: RunSurvey, prefix: str, *, text: bool, translations: bool) -> Survey:
    """Fix all problems that can be fixed, and check the site again. If `text` is set, print the fixes."""
    keys: tuple[KeyFix, ...] = ()
    found, opened = run_survey()
    while found.key_fixes and len(keys) < MAX_FIXED_KEYS:  # Fixing a key can reveal problems in its value.
        _fix_keys(root, opened if found.site else None, found, prefix, text=text)
        keys += found.key_fixes
        found, opened = run_survey()
    found = replace(found, applied_fixes=keys)
    if found.site is None or opened is None:
        return found
    return _fix_documents(opened, found, prefix, text=text, translations=translations)


def _fix_keys(root: Path, opened: OpenSite | None, survey: Survey, prefix: str, *, text: bool) -> None:
    fixes = survey.key_fixes
    with as_setup_error("--fix"):
        if opened is None:
            repair_configuration(root, fixes)
        else:
            print_commit_note(fix_keys(writes_of_command(opened), caller_of_command(opened), fixes).commit)
    if text:
        print_lines(fix_lines(FixResult(fixes, {}), prefix))


def _fix_documents(
    opened: OpenSite, survey: Survey, prefix: str, *, text: bool, translations: bool
) -> Survey:
    if survey.audit is None:
        return survey
    repair = FixRequest(survey.audit, tuple(find_fixes(survey.audit, opened.site.problems)))
    if not repair.fixes:
        return survey
    with as_setup_error("--fix"):
        outcome = fix_documents(writes_of_command(opened), caller_of_command(opened), repair)
    print_commit_note(outcome.commit)
    if text:
        print_lines(fix_lines(outcome.result, prefix))
    return replace(
        survey_site(opened.site, translations=translations),
        applied_fixes=(*survey.applied_fixes, *outcome.result.fixes),
    )


def show_changes(root: Path, survey: Survey, prefix: str) -> None:
    """Print a diff of the changes that `bifolio check --fix` would make."""
    writes = key_fix_writes(root, survey.key_fixes)
    if survey.site is not None and survey.audit is not None:
        repair = FixRequest(survey.audit, tuple(find_fixes(survey.audit, survey.site.problems)))
        writes += survey.site.preview(apply_fixes, repair)[0]
    for write in sorted(writes, key=lambda write: write.path):
        before = (root / write.path).read_bytes().decode().splitlines(keepends=True)
        after = (write.data or b"").decode().splitlines(keepends=True)
        path = prefix + write.path
        for line in difflib.unified_diff(before, after, path, path, n=0):
            click.echo(printable(line.rstrip("\r\n")))
