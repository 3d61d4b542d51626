"""Listing, comparing and committing uncommitted changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.config.settings_file import mask_settings_text
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
from server.history.exposure import reveals_more
from server.history.past import PastStates
from server.history.uncommitted import ChangedFile, changed_files, commit_changes
from server.history.viewer import Viewer
from server.paths import SETTINGS
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
from server.write.source import MaskedText, mask_text


@dataclass(frozen=True, slots=True)
class UncommittedFiles:
    """A page of the files that differ from the commit `head`. `total` is the number of all such files.

    Each file is paired with the names of its changed attributes, or with None if it contains no document.
    """

    head: str
    total: int
    files: Sequence[tuple[ChangedFile, list[str] | None]]


@dataclass(frozen=True, slots=True)
class UncommittedChange:
    """The changes to a file since the commit `head`.

    `attributes` is None if the file contains no document. `lines` is None if no diff can be shown.
    """

    head: str
    file: ChangedFile
    attributes: Mapping[str, Difference] | None
    lines: list[str] | None


def list_uncommitted(site: Site, past: PastStates, caller: Caller, page: Page) -> UncommittedFiles:
    """Return a page of the uncommitted changes that the caller may see.

    Raises ConflictError if there are no commits. Also raises ForbiddenError.
    """
    require_history(caller)
    head, state = past.require_commits(), caller.state
    caller.budget.take_turn()
    changed = _visible_files(site, past, caller)
    part, viewer = changed[page.start : page.start + page.limit], Viewer(caller.actor, state)
    values = values_of(_store(site, state), [file.version(head) for file in part], caller.budget)
    files = []
    for file, (before, after) in zip(part, values, strict=True):
        names = None
        if _is_document(file) and file.type and (before is not None or after is not None):
            names = changed_attributes(viewer.attributes(file.type), before, after, viewer)
        files.append((file, names))
    return UncommittedFiles(head, len(changed), files)


def find_uncommitted(site: Site, past: PastStates, caller: Caller, path: object) -> UncommittedChange:
    """Return the uncommitted changes to a file.

    Raises ConflictError if there are no commits. Also raises ForbiddenError, ValidationError or
    NotFoundError.
    """
    require_history(caller)
    head, state = past.require_commits(), caller.state
    if not isinstance(path, str) or not path:
        raise ValidationError('"path" must be the path of a file, such as "content/pages/about.md"')
    caller.budget.take_turn()
    changed = _visible_files(site, past, caller)
    changed_file = next((file for file in changed if file.change.path == path), None)
    if changed_file is None:
        raise NotFoundError(f'"{path[:200]}" has no uncommitted changes')
    attributes, version = None, changed_file.version(head)
    if _is_document(changed_file) and changed_file.type:
        viewer = Viewer(caller.actor, state)
        [(before, after)] = values_of(_store(site, state), [version], caller.budget)
        attributes = differences(viewer.attributes(changed_file.type), before, after, viewer)
    lines = _diff_lines(site, changed_file, head, state) if caller.actor.everything else None
    return UncommittedChange(head, changed_file, attributes, lines)


def commit_files(writes: Writes, caller: Caller, files: Sequence[str], message: str) -> str:
    """Commit the changes to files. Return the id of the commit.

    Raises ValidationError if a file has no changes. Also raises ForbiddenError or ConflictError.
    """
    require_history(caller)
    require_history(caller, "commit")
    authorship = writes.authorship(caller)
    caller.budget.take_turn()
    changed = _visible_files(writes.site, writes.past, caller)
    return commit_changes(writes.site, changed, files, message, authorship)


def _visible_files(site: Site, past: PastStates, caller: Caller) -> list[ChangedFile]:
    actor, schema = caller.actor, caller.state.schema
    changed = changed_files(site, caller.state, actor)
    if actor.everything:
        return changed
    try:
        committed = past.schema(past.require_commits())
    except ConflictError:  # With an invalid schema, nothing was served at that commit.
        return changed
    return [
        one
        for one in changed
        if one.change.status == "A" or not any(reveals_more(schema, committed, uid) for uid in one.uids)
    ]


def _is_document(changed_file: ChangedFile) -> bool:
    return changed_file.type is not None and changed_file.type.uid != UPLOAD


def _diff_lines(site: Site, changed_file: ChangedFile, head: str, state: State) -> list[str] | None:
    version = changed_file.version(head)
    is_settings = SETTINGS in (version.before, version.path, changed_file.change.path)
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
        if is_settings:
            masked = mask_settings_text(decode(data)), mask_settings_text(decode(now))
            return diff_lines(masked[0].splitlines(), masked[1].splitlines(), 0)
        before = _mask_passwords(changed_file, decode(data), state)
        after = _mask_passwords(changed_file, decode(now), state, before.passwords)
    except (OSError, SyntaxProblem, ConflictError):
        return None
    return diff_lines(before.text.splitlines(), after.text.splitlines())


def _mask_passwords(
    changed_file: ChangedFile, text: str, state: State, earlier: Sequence[str] = ()
) -> MaskedText:
    if changed_file.type is None or not text:
        return MaskedText(without_hashes(text))
    return mask_text(state.schema, changed_file.type, changed_file.change.path, text, earlier)


def _store(site: Site, state: State) -> Store:
    return Store(site.root, state.schema, state.settings, CommitTimes().timestamps)
