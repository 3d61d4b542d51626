"""`bifolio mv`."""

import os
from collections.abc import Iterator
from pathlib import Path

import click

from server.documents.path_rules import ENDINGS
from server.paths import UPLOADS
from server.service.authorship import caller_of_command, writes_of_command
from server.service.opening import Mode, open_site
from server.service.renaming import preview_rename, rename_content
from server.site.check.audit import Audit
from server.site.check.outdated_links import find_outdated_links
from server.tools.terminal import (
    as_setup_error,
    check_site,
    one_line_errors,
    print_commit_note,
    printable,
    site_option,
)
from server.write.renaming.rename import RenameRequest, RenameResult


@click.command("mv")
@click.argument("old")
@click.argument("new")
@site_option
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@one_line_errors
def mv(old: str, new: str, root: Path, dry_run: bool) -> None:
    """Rename a document or media file and update the references to it.

    OLD and NEW are file paths or TYPE/ID: bifolio mv article/night-ferry article/ferry-by-night. All locales
    and drafts are renamed together. You don't need to stop the server.
    """
    check_site(root)
    opened = open_site(root, Mode.READ if dry_run else Mode.COMMAND)
    site, writes = opened.site, writes_of_command(opened)
    rename = RenameRequest(_path_in_site(old, site.root), _path_in_site(new, site.root))
    commit, before = "", Audit(site.root, site.state.settings, site.state.snapshot)
    with as_setup_error(old):
        if dry_run:
            renamed = preview_rename(writes, rename)
        else:
            outcome = rename_content(writes, caller_of_command(opened), rename)
            renamed, commit = outcome.result, outcome.commit
    for path in () if dry_run else renamed.files:
        _remove_empty(site.root, path)
    print_commit_note(commit)
    for line in (*_lines_of(renamed), *_former_links(before, renamed)):
        click.echo(printable(line))


def _lines_of(renamed: RenameResult) -> Iterator[str]:
    yield from (f"{before} → {after}" for before, after in renamed.files.items())
    yield from (f"{path}: reference updated" for path in renamed.references)
    yield from (
        f"{link.path}:{link.line}: the link was not updated; change it by hand: {link.old} → {link.new}"
        for link in renamed.links
    )
    if renamed.ids:
        yield f"documentId: {renamed.ids[0]} → {renamed.ids[1]}"
    elif not all(path.startswith(f"{UPLOADS}/") for path in renamed.files):
        yield "documentId: unchanged, because the files contain it"


def _former_links(before: Audit, renamed: RenameResult) -> Iterator[str]:
    for found in find_outdated_links(before, renamed.files):
        links = "1 link leads" if found.link_count == 1 else f"{found.link_count} links lead"
        files = "1 file" if found.file_count == 1 else f"{found.file_count} files"
        yield f"{links} to the old URL {found.address}, in {files}; change to {found.current_address}"


def _path_in_site(text: str, root: Path) -> str:
    path, folder = os.path.relpath(Path(text).absolute(), root), os.path.dirname(text)
    known = os.path.exists(text) or ((folder or text.endswith(ENDINGS)) and os.path.isdir(folder or "."))
    if path.startswith("..") or not known:
        return text
    return f"{path}/" if text.endswith("/") or (root / path).is_dir() else path


def _remove_empty(root: Path, path: str) -> None:
    for folder in list((root / path).parents)[: path.count("/")]:
        try:
            folder.rmdir()
        except OSError:
            return
