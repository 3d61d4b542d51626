"""The history of documents: the versions of each, how they differ, and writing an earlier one again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from server.auth.draft_visibility import may_read_drafts, may_see_file
from server.auth.permissions import require
from server.documents.document import DRAFT, PUBLISHED
from server.errors import ForbiddenError, NotFoundError
from server.history.blame import MAX_VERSIONS, Blame, blame
from server.history.differences import Content, Difference, content_at, differences, values_after
from server.history.past import PastStates, selection
from server.history.restore import restore_values
from server.history.versions import ACTIONS, Deleted, Timeline, Version, Versions, deleted_documents
from server.history.viewer import Viewer
from server.query.parse import read_status, written_locale
from server.schema.model import Attribute, Type
from server.service.commit_visibility import message_for
from server.service.document_write import Operation, Verb, permit
from server.service.read import Caller, Params
from server.service.write import Command, Result, Writes
from server.site.site import Site, State
from server.storage.git.log import Commit
from server.storage.git.times import CommitTimes
from server.storage.store import Store


@dataclass(frozen=True, slots=True)
class DocumentHistory:
    """The versions of a document that a caller may see, the newest first.

    `params` name the locale and status of one version.
    """

    caller: Caller
    type: Type
    document_id: str
    versions: list[Version]
    store: Store
    params: Params

    @property
    def state(self) -> State:
        """The state that the document is in now."""
        return self.caller.state

    @property
    def viewer(self) -> Viewer:
        """The caller, as somebody who looks at earlier versions."""
        return Viewer(self.caller.actor, self.state)

    @property
    def attributes(self) -> list[Attribute]:
        """The attributes whose past the caller may see."""
        return self.viewer.attributes(self.type)

    def of_one_file(self, status: str = "") -> tuple[str, str, list[Version]]:
        """Return the locale and status that `params` name, and the versions of those.

        `status` counts before that of `params`. Raises ForbiddenError and ValidationError.
        """
        locale = written_locale(self.params.get("locale"), self.type, self.state.settings)
        status = read_status(status or self.params.get("status"))
        if status == DRAFT and not may_read_drafts(self.caller.actor, self.type):
            raise ForbiddenError(actor=self.caller.actor.name, permission=f"{self.type.singular}.readDraft")
        found = [v for v in self.versions if (v.locale, v.status) == (locale, status)]
        return locale, status, found

    def content_at(self, commit: str, status: str = "") -> Content | None:
        """Return the version at a commit; without one, as its file is now. See `of_one_file`.

        As in a read, what is published stands for a draft if there was none.
        """
        locale, status, _ = self.of_one_file(status)
        for one in (DRAFT, PUBLISHED) if status == DRAFT else (status,):
            current = self.state.snapshot.get(self.type, self.document_id, locale, one)
            content = content_at(self.store, self.type, self.versions, current, (locale, one), commit)
            if content is not None:
                return content
        return None


@dataclass(frozen=True, slots=True)
class CommittedDocument:
    """A version of a document that a commit has changed; `action` is create, update, delete or rename."""

    type: Type
    document_id: str
    locale: str
    status: str
    action: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a version differs from an earlier one.

    `since` and `to` are their commits, "" for the files as they are now, or for nothing before the first.
    `unread` names what each of both said that nothing holds today.
    """

    differences: Mapping[str, Difference]
    since: str
    to: str
    locale: str
    status: str
    unread: tuple[list[str], list[str]]


@dataclass(frozen=True, slots=True)
class Origins:
    """Which version each attribute of a document is from, of those that were looked at."""

    attributes: Mapping[str, Blame]
    versions: Sequence[Version]
    locale: str
    status: str


class Histories:
    """The histories of a site's documents. Safe to use from many threads."""

    def __init__(self, site: Site, past: PastStates, writes: Writes) -> None:
        self.site, self.past, self.writes = site, past, writes
        self._known = Versions(site, past.log)

    def commits(
        self, caller: Caller, *, since: str = "", author: str = "", type_: str = ""
    ) -> list[tuple[Commit, list[CommittedDocument]]]:
        """Return the commits that changed documents which a caller may find, with these, the newest first.

        `since` is a commit, tag, branch or time, `author` a part of a name or address, `type_` an API id of
        the documents' type. Raises ForbiddenError, ValidationError, and ConflictError in a site without any.
        """
        require_history(caller)
        caller.budget.take_turn()
        self.past.require_commits()
        wanted = selection(self.past, since, author)
        timeline = self._known.timeline(caller.state)
        return [
            (commit, documents)
            for commit in timeline.commits
            if wanted(commit) and (documents := list(_documents_of(commit, timeline, caller, type_)))
        ]

    def of(
        self, caller: Caller, api_id: str, document_id: str, params: Params, action: str = "read"
    ) -> DocumentHistory:
        """Return the history of a document, "" for that of a single type, for an action on it.

        Raises ForbiddenError, NotFoundError, and ConflictError in a site without commits.
        """
        require_history(caller, action)
        state, type_ = caller.state, caller.state.schema.endpoints.get(api_id)
        if type_ is None or (type_.kind == "singleType") != (document_id == ""):
            raise NotFoundError()
        require(caller.actor, type_, "find")
        caller.budget.take_turn()  # All commits are looked at, and git reads the files of many.
        self.past.require_commits()
        head = self.writes.head(caller)
        document_id = document_id or self._known.single_id(state, type_, head)
        sees = partial(may_see_file, caller.actor)
        versions = self._known.of(state, type_, document_id, head, sees)
        drafts = _drafts_of(caller, type_)
        if not drafts:
            versions = [version for version in versions if version.status != DRAFT]
        if not versions and not self._known.is_there(state, type_, document_id, drafts=drafts):
            raise NotFoundError()
        return DocumentHistory(caller, type_, document_id, versions, self.store(state), params)

    def deleted(self, caller: Caller, api_id: str) -> tuple[Type, Sequence[Deleted]]:
        """Return the documents of a type that were deleted. Raises what `of` raises."""
        require_history(caller)
        type_ = caller.state.schema.endpoints.get(api_id)
        if type_ is None:
            raise NotFoundError()
        require(caller.actor, type_, "find")
        caller.budget.take_turn()
        self.past.require_commits()
        drafts, timeline = _drafts_of(caller, type_), self._known.timeline(caller.state)
        return type_, deleted_documents(caller.state, type_, timeline, self.site.root, drafts=drafts)

    def message(self, caller: Caller, commit: Commit) -> str:
        """Return the message of a commit as a caller may read it."""
        return message_for(caller.actor, commit, self._known.timeline(caller.state))

    def compare(self, one: DocumentHistory, since: str, since_status: str, to: str) -> Comparison:
        """Return how the version at `to`, "" for now, differs from that at `since`.

        Both are a commit, tag, branch or time. Without `since`, it is the version before the last change, or
        with `since_status` that of this status. Raises ForbiddenError and ValidationError.
        """
        locale, status, versions = one.of_one_file()
        to = self.past.resolve(to) if to else ""
        if since or since_status:
            since = self.past.resolve(since) if since else to
            before = one.content_at(since, since_status)
        else:
            since = self._before_last(versions, to)
            before = one.content_at(since) if since else None
        after = one.content_at(to)
        old, new = (content.values if content else None for content in (before, after))
        found = differences(one.attributes, old, new, one.viewer)
        return Comparison(found, since, to, locale, status, (_unread(before, one), _unread(after, one)))

    def origins(self, one: DocumentHistory) -> Origins:
        """Return which version each attribute, and each line of a text, is from. Raises LimitError."""
        locale, status, versions = one.of_one_file()
        oldest_first, budget = versions[:MAX_VERSIONS][::-1], one.caller.budget
        values = values_after(one.store, oldest_first, budget)
        found = blame(one.attributes, zip(oldest_first, values, strict=True), budget)
        return Origins(found, oldest_first, locale, status)

    def require_restore(self, one: DocumentHistory) -> Verb:
        """Return what it would be to write an earlier version again. Raises ForbiddenError."""
        require_history(one.caller)
        there = one.type.kind == "singleType" or self._known.is_there(one.state, one.type, one.document_id)
        verb = Verb.UPDATE if there else Verb.CREATE
        permit(one.caller.reader(one.type), verb, one.params)
        return verb

    def restore(
        self,
        one: DocumentHistory,
        at: str,
        status: str,
        fields: Sequence[str],
        *,
        if_match: str | None = None,
        dry_run: bool = False,
        message: str = "",
    ) -> Result:
        """Write the values that a document had at a commit, tag, branch or time, as an update would.

        Raises NotFoundError if there was no such version, and what `Writes.write` raises.
        """
        verb = self.require_restore(one)
        content = one.content_at(self.past.resolve(at), status)
        if content is None:
            raise NotFoundError(f'There is no such version at "{at}"')
        data: dict[str, Any] = restore_values(one.attributes, content.values, fields, one.viewer)
        document_id = one.document_id if one.type.kind != "singleType" else None
        wanted = if_match if verb is Verb.UPDATE else None
        operation = Operation(one.type, verb, document_id, one.params, data, wanted)
        return self.writes.write(Command(one.caller, [operation], dry_run=dry_run, message=message))

    def store(self, state: State) -> Store:
        """Return what reads earlier versions of files as they are read in a state."""
        return Store(self.site.root, state.schema, state.settings, CommitTimes().timestamps)

    def _before_last(self, versions: list[Version], to: str) -> str:
        """Return the commit before the last change of a file, up to a commit if one is given.

        "" for its first.
        """
        if to:
            self.past.log.update(to)
            earlier = {commit.id for commit in self.past.log.before(to)}
            versions = [version for version in versions if version.commit and version.commit.id in earlier]
        return versions[0].parent if versions else to or self.past.require_commits()


def require_history(caller: Caller, action: str = "read") -> None:
    """Raise ForbiddenError if a caller may not do an action on the history."""
    if not caller.actor.may("history", action):
        raise ForbiddenError()


def _documents_of(
    commit: Commit, timeline: Timeline, caller: Caller, type_: str
) -> Iterator[CommittedDocument]:
    """Yield the documents that a commit changed, of those that a caller may find."""
    actor = caller.actor
    for change in commit.changes:
        claim = timeline.claims.get(change.path)
        if claim is None or (type_ and type_ not in (claim.type.singular, claim.type.plural)):
            continue
        if may_see_file(actor, claim):
            status, action = DRAFT if claim.draft else PUBLISHED, ACTIONS.get(change.status, "update")
            before = timeline.claims.get(change.before)
            if before is not None and not may_see_file(actor, before):
                action = "create"
            yield CommittedDocument(claim.type, claim.document_id, claim.locale, status, action)


def _drafts_of(caller: Caller, type_: Type) -> bool:
    """Return whether a caller may see drafts in the history of a type. Raises ForbiddenError."""
    drafts = may_read_drafts(caller.actor, type_)
    if type_.draft_key and not drafts:  # Only what a file says tells whether that version was a draft.
        raise ForbiddenError()
    return drafts


def _unread(content: Content | None, one: DocumentHistory) -> list[str]:
    """Return what a version said that nothing holds today, without attributes that may not be seen."""
    seen = {attribute.name for attribute in one.attributes}
    names = ((name, name.partition(".")[0]) for name in (content.unread if content else ()))
    return [name for name, first in names if first in seen or first not in one.type.attributes]
