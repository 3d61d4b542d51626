"""JSON for a document's versions, differences and blame."""

from collections.abc import Callable, Mapping
from typing import Any

from flask import Response, request

from server.api.request import answer, budgeted_json_response
from server.api.response import PRIVATE_REVALIDATE
from server.errors import ValidationError
from server.history.blame import Blame
from server.history.differences import Difference, Values, changed_attributes
from server.history.versions import Version, date_of
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.service.history import DocumentHistory, Histories
from server.service.render import dumps
from server.storage.git.log import Commit

MessageOf = Callable[[Commit], str]  # returns the part of a commit message that the caller is allowed to read


def version_json(
    version: Version,
    values: tuple[Values | None, Values | None],
    history: DocumentHistory,
    viewer: Viewer,
    message: MessageOf,
) -> dict[str, Any]:
    """Return the JSON of a version in a document's history. If the file can't be read, `attributes` is null.

    `values` contains the attribute values before and after the commit.
    """
    commit = version.commit
    unread = any(
        path and said is None for path, said in zip((version.before, version.path), values, strict=True)
    )
    return {
        **commit_fields(commit, date_of(version, history.store.root)),
        "message": message(commit) if commit else None,
        "locale": version.locale,
        "status": version.status,
        "action": version.action,
        "attributes": None
        if unread
        else changed_attributes(viewer.attributes(history.type), *values, viewer),
    }


def commit_fields(commit: Commit | None, date: str | None) -> dict[str, Any]:
    author = {"name": commit.author, "email": commit.email} if commit else None
    return {"commit": commit.id if commit else None, "author": author, "date": date}


def differences_json(found: Mapping[str, Difference]) -> dict[str, Any]:
    return {
        name: {"from": d.before, "to": d.after, **({"lines": d.lines} if d.lines is not None else {})}
        for name, d in found.items()
    }


def _diff(histories: Histories, history: DocumentHistory) -> Response:
    history.select_versions()
    names = {name: history.params.get(name) for name in ("from", "fromStatus", "to")}
    if any(name is not None and not isinstance(name, str) for name in names.values()):
        raise ValidationError(
            '"from" and "to" must each be a single commit, tag, branch or time, and "fromStatus" must be '
            "a single status"
        )
    found = histories.compare(history, *(str(name or "") for name in names.values()))
    before, after = found.unread_keys
    meta = {
        "from": found.since or None,
        "to": found.to or None,
        "locale": found.locale,
        "status": found.status,
        "unread": {"from": before, "to": after},
    }
    return budgeted_json_response(
        request, {"data": differences_json(found.differences), "meta": meta}, PRIVATE_REVALIDATE
    )


def _blame(histories: Histories, history: DocumentHistory) -> Response:
    found, budget = histories.origins(history), history.caller.budget
    commits = {_id_of(v): commit_fields(v.commit, date_of(v, history.store.root)) for v in found.versions}
    data = {name: _blame_json(each, commits, budget) for name, each in found.attributes.items()}
    meta = {"locale": found.locale, "status": found.status}
    return answer(dumps({"data": data, "meta": meta}), cache_control=PRIVATE_REVALIDATE)


def _id_of(version: Version) -> str:
    return version.commit.id if version.commit else ""


def _blame_json(blame: Blame, commits_json: Mapping[str, dict[str, Any]], budget: Budget) -> dict[str, Any]:
    """Return the JSON that tells which commits last changed an attribute and each of its lines."""
    said = commits_json[_id_of(blame.version)]
    budget.write(len(dumps(said)))
    if not blame.lines:
        return said
    sizes = {id_: len(dumps(commit)) for id_, commit in commits_json.items()}
    budget.write(sum(sizes[_id_of(version)] + len(text) for text, version in blame.lines))
    return {
        **said,
        "lines": [{"text": text, **commits_json[_id_of(version)]} for text, version in blame.lines],
    }


# By the last segment of the path.
READS: Mapping[str, Callable[[Histories, DocumentHistory], Response]] = {"diff": _diff, "blame": _blame}
