"""The history of one document as JSON: its versions, how two differ, where each value is from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from server.api.request import answer, answer_within, budget_of
from server.api.response import CALLER
from server.auth.permissions import Actor, may_read_drafts
from server.documents.document import DRAFT, PUBLISHED
from server.errors import ForbiddenError, ValidationError
from server.history.blame import MOST_VERSIONS, Blame, blame
from server.history.differences import (
    Content,
    Difference,
    Values,
    changed_attributes,
    content_at,
    differences,
    values_after,
)
from server.history.past import PastStates
from server.history.versions import Version, date_of
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.query.parse import read_status, written_locale
from server.schema.model import Attribute, Type
from server.service.render import dumps
from server.site.site import Site, State
from server.storage.git.log import Commit
from server.storage.store import Store


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose history is asked for, by whom, and in which state of the site."""

    state: State
    actor: Actor
    type: Type
    document_id: str
    versions: list[Version]
    store: Store
    params: Mapping[str, Any]

    @property
    def viewer(self) -> Viewer:
        """The actor, as somebody who looks at earlier versions."""
        return Viewer(self.actor, self.state)

    @property
    def attributes(self) -> list[Attribute]:
        """The attributes whose past the actor may see."""
        return self.viewer.attributes(self.type)

    def of_one_file(self, status: str = "") -> tuple[str, str, list[Version]]:
        """The locale and status that one version is asked for in, and the versions of those.

        `status` counts before that of the parameters. Raises ForbiddenError and ValidationError.
        """
        locale = written_locale(self.params.get("locale"), self.type, self.state.settings)
        status = read_status(status or self.params.get("status"))
        if status == DRAFT and not may_read_drafts(self.actor, self.type):
            raise ForbiddenError()
        found = [v for v in self.versions if (v.locale, v.status) == (locale, status)]
        return locale, status, found

    def content_at(self, commit: str, status: str = "") -> Content | None:
        """The version that is asked for at a commit; without one, as its file is now. See `of_one_file`.

        As in a read, what is published stands for a draft where there was none.
        """
        locale, status, _ = self.of_one_file(status)
        for one in (DRAFT, PUBLISHED) if status == DRAFT else (status,):
            current = self.state.snapshot.get(self.type, self.document_id, locale, one)
            content = content_at(self.store, self.versions, current, (locale, one), commit)
            if content is not None:
                return content
        return None


def entry(
    version: Version, values: tuple[Values | None, Values | None], one: Asked, site: Site
) -> dict[str, Any]:
    """One version as an entry of the list, with the values before and after it."""
    commit = version.commit
    unread = any(
        path and said is None for path, said in zip((version.before, version.path), values, strict=True)
    )
    return {
        **commit_of(commit, date_of(version, site.root)),
        "message": commit.message if commit else None,
        "locale": version.locale,
        "status": version.status,
        "action": version.action,
        "attributes": None if unread else changed_attributes(one.attributes, *values),
    }


def commit_of(commit: Commit | None, date: str | None) -> dict[str, Any]:
    """What is said of a commit wherever it is named; nothing but the date of what is not committed."""
    author = {"name": commit.author, "email": commit.email} if commit else None
    return {"commit": commit.id if commit else None, "author": author, "date": date}


def _diff(one: Asked, past: PastStates) -> Response:
    """How the version at one commit differs from that at another, or from the files as they are now."""
    locale, status, versions = one.of_one_file()
    names = {name: one.params.get(name) for name in ("from", "fromStatus", "to")}
    if any(name is not None and not isinstance(name, str) for name in names.values()):
        raise ValidationError("from and to must be a commit, tag, branch or time, fromStatus a status")
    to = past.resolve(str(names["to"])) if names["to"] else ""
    other = names["fromStatus"] or ""
    if names["from"] or other:
        since = past.resolve(str(names["from"])) if names["from"] else to
        before = one.content_at(since, other)
    else:
        since = _before_last(versions, to, past)
        before = one.content_at(since) if since else None
    after = one.content_at(to)
    old, new = (content.values if content else None for content in (before, after))
    data = shown_differences(differences(one.attributes, old, new, one.viewer))
    unread = {"from": _unread(before, one), "to": _unread(after, one)}
    meta = {"from": since or None, "to": to or None, "locale": locale, "status": status, "unread": unread}
    return answer_within(request, {"data": data, "meta": meta}, CALLER)


def _unread(content: Content | None, one: Asked) -> list[str]:
    """What a version said that nothing holds today, but what is about attributes that may not be seen."""
    seen = {attribute.name for attribute in one.attributes}
    names = ((name, name.partition(".")[0]) for name in (content.unread if content else ()))
    return [name for name, first in names if first in seen or first not in one.type.attributes]


def shown_differences(found: Mapping[str, Difference]) -> dict[str, Any]:
    """The attributes that differ as JSON, each with both values, and the lines of a text that has several."""
    return {
        name: {"from": d.before, "to": d.after, **({"lines": d.lines} if d.lines is not None else {})}
        for name, d in found.items()
    }


def _before_last(versions: list[Version], to: str, past: PastStates) -> str:
    """The commit before the last change of a file, up to a commit if one is given; "" for its first."""
    if to:
        past.log.update(to)
        earlier = {commit.id for commit in past.log.before(to)}
        versions = [version for version in versions if version.commit and version.commit.id in earlier]
    return versions[0].parent if versions else to or past.require_commits()


def _blame(one: Asked, past: PastStates) -> Response:
    """Which commit each attribute, and each line of a text, is from."""
    locale, status, versions = one.of_one_file()
    oldest_first, budget = versions[:MOST_VERSIONS][::-1], budget_of(request)
    values = values_after(one.store, oldest_first, budget)
    found = blame(one.attributes, zip(oldest_first, values, strict=True), budget)
    commits = {_id_of(v): commit_of(v.commit, date_of(v, one.store.root)) for v in oldest_first}
    data = {name: _blamed(each, commits, budget) for name, each in found.items()}
    meta = {"locale": locale, "status": status}
    return answer(dumps({"data": data, "meta": meta}), cache_control=CALLER)


def _id_of(version: Version) -> str:
    return version.commit.id if version.commit else ""


def _blamed(found: Blame, commits: Mapping[str, dict[str, Any]], budget: Budget) -> dict[str, Any]:
    """Where an attribute is from, of commits by their ids.

    Raises LimitError before the answer gets larger than it may be.
    """
    said = commits[_id_of(found.version)]
    budget.write(len(dumps(said)))
    if not found.lines:
        return said
    sizes = {id_: len(dumps(commit)) for id_, commit in commits.items()}
    budget.write(sum(sizes[_id_of(version)] + len(text) for text, version in found.lines))
    return {**said, "lines": [{"text": text, **commits[_id_of(version)]} for text, version in found.lines]}


# What can be read of a version, by the last part of the path.
READS = {"diff": _diff, "blame": _blame}
