"""Uncommitted changes: listing the files that differ from the last commit, and committing them."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from server.auth.draft_visibility import may_see_all
from server.auth.permissions import Actor, may_find
from server.documents.document import DRAFT, PUBLISHED
from server.documents.path_rules import Layout
from server.errors import CommitError, ConflictError, ValidationError
from server.history.versions import ACTIONS, Version
from server.paths import CONTENT, SETTINGS, TYPES, UPLOADS, cache_folder
from server.schema.model import UPLOAD, Type
from server.site.commits.message import Authorship, clean_message
from server.site.migrations.draft import MIGRATIONS
from server.site.site import Site, State
from server.storage.files import MISSING_FILE_ERRORS, is_utf_8
from server.storage.git.log import FileChange
from server.storage.git.uncommitted import uncommitted_changes

MAX_FILES = 5000  # limit for one commit
_MAX_MEMORY_BYTES = 16_384  # Larger files are not loaded into memory.


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file with an uncommitted change, and the document that it contains.

    `type` is None if the file belongs to no content type. If the file was renamed, `earlier_type` is the
    content type to which it belonged under its old path.
    """

    change: FileChange
    type: Type | None
    document_id: str = ""
    locale: str = ""
    status: str = ""
    earlier_type: Type | None = None

    @property
    def uids(self) -> list[str]:
        return [type_.uid for type_ in (self.type, self.earlier_type) if type_]

    @property
    def action(self) -> str:
        """The kind of change: "create", "update", "rename" or "delete"."""
        return ACTIONS.get(self.change.status, "update")

    @property
    def paths(self) -> tuple[str, ...]:
        # A rename is committed at both paths.
        return tuple(path for path in (self.change.before, self.change.path) if path)

    def version(self, head: str) -> Version:
        change = self.change
        after = "" if change.status == "D" else change.path
        before = "" if change.status == "A" else change.before or change.path
        return Version(self.type, None, head, after, before, self.locale, self.status, self.action)


def changed_files(site: Site, state: State, actor: Actor) -> list[ChangedFile]:
    """Return the files with uncommitted changes that the actor may see.

    Only actors with full access see files that belong to no content type. Raises ConflictError if git fails.
    """
    roots = {root or "." for root in site.roots}
    try:
        changes = uncommitted_changes(
            site.root, sorted({*roots, CONTENT, TYPES, SETTINGS, MIGRATIONS}), cache_folder(site.root)
        )
    except CommitError as error:
        raise ConflictError(str(error)) from error
    changed = _with_documents(site, state, changes)
    return [changed for changed in changed if _sees(actor, changed)]


def _with_documents(site: Site, state: State, changes: Collection[FileChange]) -> Iterator[ChangedFile]:
    layout = Layout(state.schema, state.settings)
    _, _, _, entries = site.basis()
    for change in changes:
        path = change.path
        if not all(is_utf_8(name) for name in (path, change.before)):
            continue
        entry, claim = entries.get(path), layout.claim(path)
        earlier_type = _owner(state, change.before, layout) if change.before else None
        document = entry.document if entry else None
        if path.startswith(f"{UPLOADS}/"):
            yield ChangedFile(change, state.schema.types[UPLOAD], earlier_type=earlier_type)
        elif document is not None:
            key = (document.document_id, document.locale, document.status)
            yield ChangedFile(change, document.type, *key, earlier_type)
        elif claim is not None:
            status = DRAFT if claim.draft else PUBLISHED
            yield ChangedFile(change, claim.type, claim.document_id, claim.locale, status, earlier_type)
        else:
            yield ChangedFile(change, None)


def _sees(actor: Actor, changed: ChangedFile) -> bool:
    # A renamed file must be visible at both paths.
    types = (changed.type, *((changed.earlier_type,) if changed.change.before else ()))
    return actor.everything or all(type_ is not None and _sees_type(actor, type_) for type_ in types)


def _sees_type(actor: Actor, type_: Type) -> bool:
    return may_find(actor, UPLOAD) if type_.uid == UPLOAD else may_see_all(actor, type_)


def _owner(state: State, path: str, layout: Layout) -> Type | None:
    if path.startswith(f"{UPLOADS}/"):
        return state.schema.types[UPLOAD]
    claim = layout.claim(path)
    return claim.type if claim else None


def commit_changes(
    site: Site,
    changed: Collection[ChangedFile],
    paths_to_commit: Collection[str],
    message: str,
    authorship: Authorship,
) -> str:
    """Commit the files at `paths_to_commit`, and return the commit id.

    Raises ValidationError if the message is empty or a path is not in `changed`, or ConflictError if the
    commit fails.
    """
    changed_by_path = {file.change.path: file for file in changed}
    unknown = next((path for path in paths_to_commit if path not in changed_by_path), None)
    if unknown is not None:
        raise ValidationError(f'"{unknown[:200]}" has no uncommitted changes that you may see')
    cleaned = clean_message(message)
    if not cleaned:
        raise ValidationError("The commit message is empty")
    selected = [changed_by_path[path] for path in dict.fromkeys(paths_to_commit)]
    paths = [path for file in selected for path in file.paths]
    documents = [f"{c.type.singular}/{c.document_id}" for c in selected if c.type and c.document_id]
    try:
        if arbiter := site.arbiter:
            commit = arbiter.commit(partial(_contents, site.root, paths), cleaned, documents, authorship)
        else:
            commit = site.committer.commit_files(_contents(site.root, paths), cleaned, documents, authorship)
    except (CommitError, OSError) as error:
        raise ConflictError(f"The files can't be committed: {error}") from error
    if not commit:
        raise ConflictError("Nothing was committed, because none of the files differs from the last commit")
    return commit


def _contents(root: Path, paths: Iterable[str]) -> dict[str, bytes | Path | None]:
    return {path: _content(root, path) for path in paths}


def _content(root: Path, path: str) -> bytes | Path | None:
    """Return a file's content, its path if the file is large, or None if the file was deleted.

    Raises ConflictError if the file is a symbolic link or can't be read.
    """
    file = root / path
    if file.is_symlink():
        raise ConflictError(f"{path} is a symbolic link; commit it with git")
    try:
        return file if file.stat().st_size > _MAX_MEMORY_BYTES else file.read_bytes()
    except MISSING_FILE_ERRORS:
        return None
    except OSError as error:
        raise ConflictError(f"{path} can't be read: {error.strerror}") from error
