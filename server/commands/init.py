"""`bifolio init`."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from server.config.model import FILE
from server.config.reader import read_settings
from server.config.values import LOCALE
from server.documents.path_rules import YAML, Layout
from server.errors import GitError, SetupError
from server.paths import STATE_FOLDER as STATE
from server.schema.load import read_content_types
from server.service.opening import Mode, open_site
from server.site.check.survey import survey
from server.storage.files import walk
from server.storage.git.command import git
from server.storage.git.refs import head_commit
from server.storage.git.repository import git_folder
from server.tools.check import count_text
from server.tools.generated_files import create_file
from server.tools.init.folders import TreeFolders
from server.tools.init.propose import propose, proposed_files, table_lines
from server.tools.init.scan import Scan, scan_folder
from server.tools.init.site_name import choose_site_name
from server.tools.init.starter import compose_file, starter_files, workflow_file
from server.tools.terminal import one_line_errors, print_lines, progress_bar

_DATA_ENDINGS = (*YAML, ".json")


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), default=".", metavar="[DIR]")
@click.option(
    "--name",
    help="The site's name. [default: the name in the site generator's settings, or the folder's name]",
)
@click.option(
    "--locale",
    "locales",
    multiple=True,
    help="A locale of the site; can be repeated. The first one is the default locale.",
)
@click.option("--example/--no-example", default=None, help="Add a first article to a new site.")
@click.option("--docker", is_flag=True, help="Also write compose.yaml, to serve the site in a container.")
@click.option("--ci", is_flag=True, help="Also write a GitHub workflow that checks the content of each push.")
@click.option(
    "--from",
    "repository",
    metavar="URL",
    help="Bifolio's git repository, for --docker and --ci. [default: the source of this installation]",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, without writing.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask questions.")
@one_line_errors
def init(
    folder: Path,
    name: str | None,
    locales: tuple[str, ...],
    example: bool | None,
    docker: bool,
    ci: bool,
    repository: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Create an empty site, or a site from the Markdown, YAML and JSON files in a folder.

    In an empty folder, this writes content types, site.yaml and a first article. In a folder with content, it
    writes only content-types/ and site.yaml. In an existing site, it adds content types for Markdown files
    that belong to none, or, with --docker or --ci, only the files for these. Existing files are never
    changed.
    """
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and not (yes or dry_run)
    _check(folder, locales)
    deployment = {
        **(compose_file(folder, repository) if docker else {}),
        **(workflow_file(folder, repository) if ci else {}),
    }
    if deployment and _is_site(folder):
        _write(folder, deployment, dry_run=dry_run)
        return
    found, used, documents = _scan_folder(folder)
    title = name or choose_site_name(folder, _projects(folder, found))
    if found.pages or found.unreadable or used:
        proposal = propose(folder, found, locales, used)
        print_lines(table_lines(proposal))
        if not proposal.types:
            _report_nothing_to_add(folder, documents if used else None)
            return
        if proposal.locales and not locales:
            click.echo(f"Default locale: {proposal.locales[0]}; choose another with --locale\n")
        files = proposed_files(proposal, title, has_history=_has_history(folder))
        what = f"Write {FILE} and {count_text(len(proposal.types), 'content type')}?"
        if interactive and not click.confirm(what, default=True):
            return
    else:
        if interactive:
            title, locales, example = _ask(title, name, locales, example)
        files = starter_files(title, locales or ("en",), example=example is not False)
    _write(folder, {**files, **deployment}, dry_run=dry_run)
    if not dry_run:
        _report(folder)


def _is_site(folder: Path) -> bool:
    return (folder / FILE).exists() or (folder / "content-types").is_dir()


def _check(folder: Path, locales: tuple[str, ...]) -> None:
    for code in locales:
        if not LOCALE.fullmatch(code):
            what = f'must be a locale code (found "{code}")'
            raise SetupError("--locale", None, what, "use codes such as en or pt-BR")
    if folder.exists() and not folder.is_dir():
        raise SetupError(
            str(folder), None, "is not a folder", "pass the path of an existing folder or of a new folder"
        )


def _report_nothing_to_add(folder: Path, documents: int | None) -> None:
    if documents is None:
        data = sum(path.endswith(_DATA_ENDINGS) for path in walk(folder, [""]).files)
        files = f"; {count_text(data, 'YAML or JSON file')} found, see docs/existing-sites.md" if data else ""
        raise SetupError(
            str(folder),
            None,
            "none of the files can be used as a document",
            f"the list above gives the reasons{files}",
        )
    kept = f"its content types have {count_text(documents, 'document')}"
    click.echo(f"this folder is already a site: {kept}; nothing new to add")


def _scan_folder(folder: Path) -> tuple[Scan, list[str], int]:
    if not folder.is_dir():
        return Scan({}), [], 0
    schema = read_content_types(folder)
    with progress_bar("Reading files") as progress:
        found = scan_folder(folder, progress)
    types = schema.content_types
    if not types:
        return found, [], 0
    layout = Layout(schema, read_settings(folder))
    claims = {path: layout.claim(path) for path in walk(folder, [""]).files}
    documents = {(claim.type.uid, claim.name) for claim in claims.values() if claim}
    free = {path: page for path, page in found.pages.items() if not claims.get(path)}
    skipped = {path: at for path, at in found.skipped.items() if not claims.get(path)}
    used = [word for t in types for word in (t.singular, t.plural)]
    return Scan(free, found.unreadable, skipped=skipped), used, len(documents)


def _has_history(folder: Path) -> bool:
    try:
        return bool(head_commit(folder) and git(folder, "ls-tree", "HEAD", "--", "."))
    except GitError:
        return False


def _projects(folder: Path, scan: Scan) -> frozenset[str]:
    return TreeFolders(folder, tuple(scan.pages)).projects


def _ask(
    title: str, name: str | None, locales: tuple[str, ...], example: bool | None
) -> tuple[str, tuple[str, ...], bool]:
    title = name or click.prompt("Name of the site", default=title)
    while not locales:
        told = click.prompt("Locales, default first", default="en")
        locales = tuple(told.replace(",", " ").split())
        wrong = [code for code in locales if not LOCALE.fullmatch(code)]
        if wrong:
            click.echo(f'"{wrong[0]}" is not a locale code. Use codes such as en or pt-BR.')
            locales = ()
    if example is None:
        example = click.confirm("Add a first article?", default=True)
    return title, locales, example


def _write(folder: Path, files: Mapping[str, str], *, dry_run: bool) -> None:
    for path, text in sorted(files.items()):
        target = folder / path
        if target.exists() or target.is_symlink():
            click.echo(
                f"  kept {path}: it already exists" + ("; you may need to add" if path == FILE else "")
            )
            if path == FILE:
                click.echo("".join(f"    {line}\n" for line in text.splitlines() if line.strip()), nl=False)
            continue
        if not dry_run:
            create_file(folder, path, text.encode())
        click.echo(f"  {'would write' if dry_run else 'wrote'} {path}")


def _report(folder: Path) -> None:
    kept = (folder / STATE).exists()
    found = survey(folder, lambda: open_site(folder, Mode.READ).site)
    if not kept:
        # Delete the caches that the check created.
        shutil.rmtree(folder / STATE, ignore_errors=True)
    option = "" if folder.resolve() == Path.cwd() else f" --site {folder}"
    if found.problems:
        counts = f"{count_text(found.errors, 'error')} and {count_text(found.warnings, 'warning')}"
        click.echo(f"\n{counts}: bifolio check{option}")
    if found.site:
        state = found.site.state
        open_ = state.settings.roles["public"]
        sizes = {
            name: len(state.snapshot.tables[t.uid].versions)
            for name, t in state.schema.endpoints.items()
            if f"{t.singular}.find" in open_
        }
        click.echo(f"\nServe it:  bifolio serve{option}")
        if sizes:
            largest = max(sizes, key=lambda name: sizes[name])
            click.echo(f"Query it:  curl 'http://localhost:1337/api/{largest}'")
        if git_folder(folder) is None:
            there = f"cd {shlex.quote(str(folder))} && " if option else ""
            click.echo(f"Commit it: {there}git init -b main && git add -A && git commit -m Begin")
