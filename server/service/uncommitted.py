"""What is in no commit yet: which files, what has changed in each, and commits of some of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.documents.password_masks import without_hashes
from server.errors import ConflictError, NotFoundError, ValidationError
from server.formats.tree import SyntaxProblem
from server.history.differences import (
    MAX_COMPARED_CHARS,
    Difference,
    changed_attributes,
    diff_lines,
    differences,
    values_of,
)
from server.history.past import PastStates
from server.history.uncommitted import ChangedFile, changed_files, commit_changes
from server.history.viewer import Viewer
from server.query.ast import Page
from server.schema.model import UPLOAD
from server.service.history import require_history
from server.service.read import Caller
from server.service.write import Writes
from server.site.site import Site, State
from server.storage.git.times import CommitTimes
from server.storage.git.tree import read_named
from server.storage.read import decode, read_bytes
from server.storage.store import Store
from server.write.source import Masked, mask_text


@dataclass(frozen=True, slots=True)
class UncommittedFiles:
    """A page of the files that differ from the commit `head`, of `total`.

    With each are the attributes that have changed, None of one that is no document or can't be read.
    """

    head: str
    total: int
    files: Sequence[tuple[ChangedFile, list[str] | None]]


@dataclass(frozen=True, slots=True)
class UncommittedChange:
    """What has changed in one file since the commit `head`: by attribute, and by line, None as above.

    The lines are None as well if the caller may not see all.
    """

    head: str
    file: ChangedFile
    attributes: Mapping[str, Difference] | None
    lines: list[str] | None


def list_uncommitted(site: Site, past: PastStates, caller: Caller, page: Page) -> UncommittedFiles:
    """Return the files that are not committed as they are, of those that a caller may see.

    Raises ForbiddenError, and ConflictError in a site without commits.
    """
    require_history(caller)
    head, state = past.require_commits(), caller.state
    caller.budget.take_turn()
    found = changed_files(site, state, caller.actor)
    part, viewer = found[page.start : page.start + page.limit], Viewer(caller.actor, state)
    values = values_of(_store(site, state), [one.version(head) for one in part], caller.budget)
    files = []
    for one, (before, after) in zip(part, values, strict=True):
        names = None
        if _is_document(one) and one.type and (before is not None or after is not None):
            names = changed_attributes(viewer.attributes(one.type), before, after, viewer)
        files.append((one, names))
    return UncommittedFiles(head, len(found), files)


def find_uncommitted(site: Site, past: PastStates, caller: Caller, path: object) -> UncommittedChange:
    """Return what has changed in a file.

    Raises ForbiddenError, NotFoundError, ConflictError, and ValidationError for what is not a path.
    """
    require_history(caller)
    head, state = past.require_commits(), caller.state
    if not isinstance(path, str) or not path:
        raise ValidationError("path must be that of a file, such as content/pages/about.md")
    caller.budget.take_turn()
    changed = changed_files(site, state, caller.actor)
    found = next((one for one in changed if one.change.path == path), None)
    if found is None:
        raise NotFoundError(f'"{path[:200]}" does not differ from the last commit')
    attributes, version = None, found.version(head)
    if _is_document(found) and found.type:
        viewer = Viewer(caller.actor, state)
        [(before, after)] = values_of(_store(site, state), [version], caller.budget)
        attributes = differences(viewer.attributes(found.type), before, after, viewer)
    lines = _lines(site, found, head, state) if caller.actor.everything else None
    return UncommittedChange(head, found, attributes, lines)


def commit_files(writes: Writes, caller: Caller, files: Sequence[str], message: str) -> str:
    """Commit some files as they are, in the name of the caller. Returns the commit's id.

    Raises ForbiddenError, ValidationError and ConflictError, as `commit_changes` does.
    """
    require_history(caller)
    require_history(caller, "commit")
    by = writes.authorship(caller)
    caller.budget.take_turn()
    changed = changed_files(writes.site, caller.state, caller.actor)
    return commit_changes(writes.site, changed, files, message, by)


def _is_document(one: ChangedFile) -> bool:
    return one.type is not None and one.type.uid != UPLOAD


def _lines(site: Site, one: ChangedFile, head: str, state: State) -> list[str] | None:
    """Return the lines in which a file differs from the last commit, with passwords masked.

    None if either text is none, is too long, or can't be read and may hold a password.
    """
    version = one.version(head)
    name = f"{version.parent}:./{version.before}"
    data = (
        next(read_named(site.root, [name], MAX_COMPARED_CHARS), None)
        if version.before and "\n" not in name
        else b""
    )
    try:
        now = read_bytes(site.root, version.path)[0] if version.path else b""
        if data is None or len(now) > MAX_COMPARED_CHARS:
            return None
        before = _mask_passwords(one, decode(data), state)
        after = _mask_passwords(one, decode(now), state, before.passwords)
    except (OSError, SyntaxProblem, ConflictError):
        return None
    return diff_lines(before.text.splitlines(), after.text.splitlines())


def _mask_passwords(one: ChangedFile, text: str, state: State, earlier: Sequence[str] = ()) -> Masked:
    """Return the text of a file, or of none, without the hashes of passwords. Raises ConflictError."""
    if one.type is None or not text:
        return Masked(without_hashes(text))
    return mask_text(state.schema, one.type, one.change.path, text, earlier)


def _store(site: Site, state: State) -> Store:
    return Store(site.root, state.schema, state.settings, CommitTimes().timestamps)
