"""What is in no commit yet as JSON, and commits of it that somebody asks for."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from flask import Response, request

from server.api.request import (
    answer,
    answer_within,
    budget_of,
    parameters,
    read_body,
    state_of,
    tell_commit,
)
from server.api.response import CALLER
from server.api.routes.history.document import shown_differences
from server.api.routes.write_requests import LONGEST_MESSAGE, message_of
from server.auth.permissions import Actor
from server.errors import ConflictError, NotFoundError, ValidationError
from server.formats.tree import SyntaxProblem
from server.history.differences import LONG, changed_attributes, differences, values_of
from server.history.lines import unified_lines
from server.history.past import PastStates
from server.history.uncommitted import MOST_FILES, ChangedFile, changed_files, commit_changes
from server.history.versions import date_of
from server.history.viewer import Viewer
from server.query.pagination import pagination, read_page
from server.schema.model import UPLOAD
from server.schema.naming import key_of, title_of
from server.service.read import Caller
from server.service.render import dumps
from server.service.write import Writes
from server.site.site import Site, State
from server.storage.git.refs import checked_out
from server.storage.git.repository import under_way
from server.storage.git.times import CommitTimes
from server.storage.git.tree import read_named
from server.storage.read import decode, read_bytes
from server.storage.store import Store
from server.write.source.masking import Masked, masked, without_hashes


def listed(site: Site, past: PastStates, actor: Actor) -> Response:
    """The files that are not committed as they are, with what has changed in each."""
    state, params, head = state_of(request), parameters(request), past.require_commits()
    page = read_page({n: params[n] for n in ("page", "pageSize") if n in params}, state.settings)
    budget_of(request).take_turn()
    found = changed_files(site, state, actor)
    part = found[page.start : page.start + page.limit]
    meta = {
        "head": head,
        "branch": checked_out(site.root) or None,
        "commit": _when(state.settings.commit),
        "underWay": under_way(site.git.folder) or None if site.git.folder else None,
        "pending": len(site.committer.queue.pending()),
        "pagination": pagination(page, len(found)),
    }
    store, viewer = _store(site, state), Viewer(actor, state)
    values = values_of(store, [one.version(head) for one in part], budget_of(request))
    data = []
    for one, (before, after) in zip(part, values, strict=True):
        names = None
        if _is_document(one) and one.type and (before is not None or after is not None):
            names = changed_attributes(viewer.attributes(one.type), before, after)
        data.append({**_shown(one, state, site.root), "attributes": names})
    return answer_within(request, {"data": data, "meta": meta}, CALLER)


def diff(site: Site, past: PastStates, actor: Actor) -> Response:
    """What has changed in one file: by attribute, and, for full access, by line."""
    state, path, head = state_of(request), parameters(request).get("path"), past.require_commits()
    if not isinstance(path, str) or not path:
        raise ValidationError("path must be that of a file, such as content/pages/about.md")
    budget_of(request).take_turn()
    found = next((one for one in changed_files(site, state, actor) if one.change.path == path), None)
    if found is None:
        raise NotFoundError(f'"{path[:200]}" does not differ from the last commit')
    attributes, version = None, found.version(head)
    if _is_document(found) and found.type:
        viewer = Viewer(actor, state)
        [(before, after)] = values_of(_store(site, state), [version], budget_of(request))
        attributes = shown_differences(differences(viewer.attributes(found.type), before, after, viewer))
    lines = _lines(site.root, found, head, state) if actor.everything else None
    data = {**_shown(found, state, site.root), "attributes": attributes, "lines": lines}
    return answer_within(request, {"data": data, "meta": {"head": head}}, CALLER)


def commit(site: Site, writes: Writes, past: PastStates, caller: Caller) -> Response:
    """Commit some of the files, in the name of who asks."""
    state = state_of(request)
    past.require_commits()
    message, files = _wanted(read_body(request))
    by = writes.authorship(caller, message=message_of(request))
    budget_of(request).take_turn()
    made = commit_changes(site, changed_files(site, state, caller.actor), files, message, by)
    return tell_commit(answer(dumps({"data": {"commit": made, "files": files}}), 201), made)


def _wanted(body: Any) -> tuple[str, list[str]]:
    """The message of a commit, and the paths of its files. Raises ValidationError."""
    message, files = (body.get(name) if isinstance(body, dict) else None for name in ("message", "files"))
    named = isinstance(files, list) and files and all(isinstance(path, str) for path in files)
    if not isinstance(message, str) or not isinstance(files, list) or not named:
        raise ValidationError('The body must be {"message": "What was done", "files": ["content/…"]}')
    if len(message) > LONGEST_MESSAGE:
        raise ValidationError(f"message must have at most {LONGEST_MESSAGE:,} characters")
    if len(files) > MOST_FILES:
        raise ValidationError(f"At most {MOST_FILES:,} files are committed at once")
    return message, files


def _when(after: timedelta | None) -> str:
    """When writes are committed, as `git.commit` of site.yaml has it."""
    if after is None:
        return "off"
    return f"{after.total_seconds():g}s" if after else "each"


def _is_document(one: ChangedFile) -> bool:
    return one.type is not None and one.type.uid != UPLOAD


def _shown(one: ChangedFile, state: State, root: Path) -> Mapping[str, Any]:
    """A file as JSON: what was done to it, and of which document it is."""
    version = one.version("")
    document = None
    if one.type and one.document_id:
        document = state.snapshot.get(one.type, one.document_id, one.locale, one.status)
    name = title_of(document.type) if document else None
    return {
        "path": one.change.path,
        "before": one.change.before or None,
        "action": one.action,
        "type": key_of(one.type) if one.type else None,
        "documentId": one.document_id or None,
        "locale": one.locale or None,
        "status": one.status or None,
        "title": str(document.get(name) or "") or None if document and name else None,
        "date": date_of(version, root),
    }


def _lines(root: Path, one: ChangedFile, head: str, state: State) -> list[str] | None:
    """The lines in which a file differs from the last commit, with passwords masked.

    None where either text is none, is too long, or can't be read and may hold a password.
    """
    version = one.version(head)
    name = f"{version.parent}:./{version.before}"
    data = next(read_named(root, [name], LONG), None) if version.before and "\n" not in name else b""
    try:
        now = read_bytes(root, version.path)[0] if version.path else b""
        if data is None or len(now) > LONG:
            return None
        before = _masked(one, decode(data), state)
        after = _masked(one, decode(now), state, before.passwords)
    except (OSError, SyntaxProblem, ConflictError):
        return None
    return unified_lines(before.text.splitlines(), after.text.splitlines())


def _masked(one: ChangedFile, text: str, state: State, earlier: Sequence[str] = ()) -> Masked:
    """The text of a file, or of none, without the hashes of passwords. Raises ConflictError."""
    if one.type is None or not text:
        return Masked(without_hashes(text))
    return masked(state.schema, one.type, one.change.path, text, earlier)


def _store(site: Site, state: State) -> Store:
    return Store(site.root, state.schema, state.settings, CommitTimes().timestamps)
