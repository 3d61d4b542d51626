"""`bifolio log`, `bifolio diff` and `bifolio blame`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from server.auth.permissions import Actor
from server.documents.document import DRAFT, PUBLISHED
from server.documents.timestamps import from_seconds
from server.errors import ApiError, SetupError
from server.history.blame import MAX_VERSIONS, blame
from server.history.differences import (
    Difference,
    changed_attributes,
    content_at,
    differences,
    values_after,
    values_of,
    visible_values,
)
from server.history.past import PastStates, commit_filter
from server.history.versions import ACTIONS, Timeline, Version, Versions, date_of
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.index.effective_version import edited_status
from server.schema.model import Type
from server.schema.spelling import suggestion
from server.service.opening import Mode, open_site
from server.site.site import Site
from server.storage.git.log import Commit
from server.storage.git.times import CommitTimes
from server.storage.store import Store
from server.tools.terminal import Part, check_site, one_line_errors, print_lines, printable, site_option

TERMINAL_ACTOR = Actor("terminal", everything=True)
COLOURS = {"+": "green", "-": "red", "@": "cyan"}
MAX_SHOWN_CHANGES = 10  # How many changes are printed for each commit.
UNCOMMITTED_LABEL = "not committed"
_NAMES_HINT = "pass a file, or TYPE/ID such as article/night-ferry"
_COMMITS_HINT = (
    "to pass commits, use options: bifolio diff --from COMMIT --to COMMIT, or bifolio log --since COMMIT"
)

document_options = (
    click.option("--locale", help="The document's locale. [default: the site's default locale]"),
    click.option("--draft", is_flag=True, help="Use the draft instead of the published version."),
)


@dataclass(frozen=True, slots=True)
class Repository:
    """A site with its git history."""

    site: Site
    past: PastStates
    versions: Versions
    store: Store

    @classmethod
    def open(cls, root: Path) -> "Repository":
        """Open a site. Raises SetupError if it has no git history."""
        check_site(root)
        opened = open_site(root, Mode.READ)
        site, past = opened.site, opened.past
        try:
            past.require_commits()
        except ApiError as error:
            raise SetupError(str(root), None, error.message) from error
        store = Store(site.root, site.state.schema, site.state.settings, CommitTimes().timestamps)
        return cls(site, past, Versions(site, past.log), store)

    @property
    def viewer(self) -> Viewer:
        # Anyone who runs this command is able to read all files anyway.
        return Viewer(TERMINAL_ACTOR, self.site.state)

    def find_document(self, text: str) -> tuple[Type, str]:
        """Parse a document's path or TYPE/ID, and return its type and id.

        Raises SetupError if `text` is neither.
        """
        path = Path(text).resolve()
        inside = path.relative_to(self.site.root).as_posix() if path.is_relative_to(self.site.root) else text
        for candidate in (inside, text):
            claim = self.store.layout.claim(candidate)
            if claim is not None:
                own = (e.document for p, e in self.site.basis()[3].items() if p == candidate and e.document)
                return claim.type, next((document.document_id for document in own), claim.document_id)
        name, _, document_id = text.partition("/")
        types = {n: t for t in self.site.state.schema.content_types for n in (t.singular, t.plural)}
        if name not in types or (not document_id and types[name].kind != "singleType"):
            fix = suggestion(name, types) or (
                _COMMITS_HINT if self._is_commit(text.partition("..")[0]) else _NAMES_HINT
            )
            raise SetupError(text, None, "is neither the path nor the TYPE/ID of a document", fix)
        return types[name], document_id or self.versions.single_type_document_id(self.site.state, types[name])

    def _is_commit(self, text: str) -> bool:
        try:
            return bool(self.past.resolve(text))
        except ApiError:
            return False

    def document_versions(self, text: str) -> tuple[Type, str, list[Version]]:
        """Return the type, id and versions of a document, even if the document was deleted.

        Raises SetupError if the document never existed.
        """
        type_, document_id = self.find_document(text)
        found = self.versions.list_versions(self.site.state, type_, document_id)
        if not found and not self.versions.is_there(self.site.state, type_, document_id):
            raise SetupError(
                text,
                None,
                f'no document with the id "{document_id}" exists now or in the git history',
                "run `bifolio log` to list the documents that have changed",
            )
        return type_, document_id, found

    def commit(self, name: str) -> str:
        try:
            return self.past.resolve(name)
        except ApiError as error:
            raise SetupError(name, None, error.message) from error

    def commit_filter(self, since: str, author: str) -> Callable[[Commit], bool]:
        try:
            return commit_filter(self.past, since, author)
        except ApiError as error:
            raise SetupError(since, None, error.message) from error

    def locale_and_status(
        self, type_: Type, versions: list[Version], locale: str | None, *, draft: bool
    ) -> tuple[str, str]:
        # A document that was never published in the locale is shown as a draft.
        locale = locale or self.site.state.settings.locales.default
        published = any((v.locale, v.status) == (locale, PUBLISHED) for v in versions)
        return locale, DRAFT if draft or (not published and edited_status(type_) == DRAFT) else PUBLISHED


@click.command("log")
@click.argument("document", required=False)
@site_option
@click.option("--since", help="Show only commits since a date (2026-11-01) or after a commit.")
@click.option("--author", help="Show only commits by this author: an e-mail address, or part of a name.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    help="Show at most this number of commits.",
)
@one_line_errors
def log(document: str | None, root: Path, since: str | None, author: str | None, limit: int) -> None:
    """Show the history of DOCUMENT (a file or TYPE/ID) or of the whole site."""
    repository = Repository.open(root)
    wanted = repository.commit_filter(since or "", author or "")
    if document is None:
        timeline = repository.versions.timeline(repository.site.state)
        commits = [
            c for c in timeline.commits if wanted(c) and any(x.path in timeline.claims for x in c.changes)
        ]
        print_lines(line for commit in commits[:limit] for line in _site_lines(commit, timeline))
        return
    type_, _, versions = repository.document_versions(document)
    shown = [v for v in versions if (wanted(v.commit) if v.commit else not author)][:limit]
    values = values_of(repository.store, shown, Budget())
    attributes = repository.viewer.attributes(type_)
    for version, pair in zip(shown, values, strict=True):
        names = changed_attributes(attributes, *pair, repository.viewer)
        print_lines(_version_lines(version, names, repository.site.root))


@click.command("diff")
@click.argument("document", required=False)
@site_option
@click.option("--from", "since", help="The commit to compare from. [default: HEAD]")
@click.option("--to", help="The commit to compare to. [default: the files on disk]")
@document_options[0]
@document_options[1]
@one_line_errors
def diff(
    document: str | None, root: Path, since: str | None, to: str | None, locale: str | None, draft: bool
) -> None:
    """Show changes, attribute by attribute, in DOCUMENT (a file or TYPE/ID) or the whole site.

    Compares the files on disk with HEAD unless you pass commits.
    """
    repository = Repository.open(root)
    first = repository.commit(since or "HEAD")
    last = repository.commit(to) if to else ""
    names = [document] if document else sorted(_changed_documents(repository, first, last))
    for name in names:
        type_, document_id, versions = repository.document_versions(name)
        places = {(v.locale, v.status) for v in versions}
        if locale or draft or len(places) <= 1:
            places = {repository.locale_and_status(type_, versions, locale, draft=draft)}
        for locale_and_status in sorted(places):
            current = repository.site.state.snapshot.get(type_, document_id, *locale_and_status)
            contents = (
                content_at(repository.store, type_, versions, current, locale_and_status, commit)
                for commit in (first, last)
            )
            before, after = (content.values if content else None for content in contents)
            found = differences(repository.viewer.attributes(type_), before, after, repository.viewer)
            if found:
                print_lines(
                    _diff_lines(f"{type_.singular}/{document_id} ({', '.join(locale_and_status)})", found)
                )


@click.command("blame")
@click.argument("document")
@site_option
@document_options[0]
@document_options[1]
@one_line_errors
def blame_command(document: str, root: Path, locale: str | None, draft: bool) -> None:
    """Show the commit that last changed each attribute and each line of text in DOCUMENT."""
    repository = Repository.open(root)
    type_, _, versions = repository.document_versions(document)
    locale_and_status = repository.locale_and_status(type_, versions, locale, draft=draft)
    oldest_first = [v for v in versions if (v.locale, v.status) == locale_and_status][:MAX_VERSIONS][::-1]
    read = values_after(repository.store, oldest_first, Budget())
    visible = (values and visible_values(type_, values, repository.viewer) for values in read)
    for name, found in blame(zip(oldest_first, visible, strict=True), Budget()).items():
        print_lines([[(f"{name}: ", {"bold": True}), *_from(found.version, repository.site.root)]])
        print_lines(
            [[*_from(v, repository.site.root), (f"  {printable(text)}", {})] for text, v in found.lines]
        )


def _changed_documents(repository: Repository, first: str, last: str) -> set[str]:
    """Return the documents that differ between two commits, as TYPE/ID.

    An empty commit name stands for the files on disk.
    """
    layout, known = repository.store.layout, {p: e.document for p, e in repository.site.basis()[3].items()}
    found = set()
    for path in repository.past.changed_between(first, last):
        claim, document = layout.claim(path), known.get(path)
        if claim is not None:
            found.add(f"{claim.type.singular}/{document.document_id if document else claim.document_id}")
    return found


def _from(version: Version, root: Path) -> list[Part]:
    commit = version.commit
    date = (date_of(version, root) or "")[:10]
    id_, author = (commit.id[:8], commit.author) if commit else (UNCOMMITTED_LABEL, "")
    return [(f"{id_} ", {"fg": "yellow"}), (f"{date} {printable(author):<16.16}", {})]


def _version_lines(version: Version, attributes: Iterable[str], root: Path) -> Iterator[list[Part]]:
    what = f"{version.action}, {version.locale}{', draft' if version.status == DRAFT else ''}"
    yield [*_from(version, root), (f" {what}: {', '.join(attributes)}", {"fg": "cyan"})]
    if version.commit:
        subject = version.commit.message.partition("\n")[0]
        yield [(f"    {printable(subject)}", {})]


def _site_lines(commit: Commit, timeline: Timeline) -> Iterator[list[Part]]:
    date = from_seconds(commit.authored)[:10]
    subject = commit.message.partition("\n")[0]
    yield [
        (f"{commit.id[:8]} ", {"fg": "yellow"}),
        (f"{date} {printable(commit.author):<16.16} ", {}),
        (printable(subject), {"bold": True}),
    ]
    changes = [change for change in commit.changes if change.path in timeline.claims]
    for change in changes[:MAX_SHOWN_CHANGES]:
        yield [(f"    {ACTIONS.get(change.status, 'update')} {printable(change.path)}", {"fg": "cyan"})]
    if len(changes) > MAX_SHOWN_CHANGES:
        yield [(f"    … and {len(changes) - MAX_SHOWN_CHANGES:,} more", {"fg": "cyan"})]


def _diff_lines(title: str, found: Mapping[str, Difference]) -> Iterator[list[Part]]:
    yield [(title, {"bold": True})]
    for name, difference in found.items():
        lines = difference.lines
        if lines is None:
            sides = (("-", difference.before), ("+", difference.after))
            lines = [f"{sign}{value}" for sign, value in sides if value is not None]
        yield [(f"  {name}", {"fg": "cyan"})]
        for line in lines:
            yield [(f"    {printable(line)}", {"fg": COLOURS[line[0]]} if line[:1] in COLOURS else {})]
