"""The history of documents: comparing and restoring versions, and finding the origin of each value."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from server.auth.draft_visibility import has_draft_permission, may_read_drafts
from server.auth.permissions import forbidden, may_find, require
from server.documents.document import DRAFT, PUBLISHED
from server.errors import ConflictError, NotFoundError
from server.formats.json import read_json
from server.history.blame import MAX_VERSIONS, Blame, blame
from server.history.differences import (
    Content,
    Difference,
    content_at,
    differences,
    values_after,
    visible_values,
)
from server.history.exposure import reveals_more
from server.history.former_layouts import FormerLayouts
from server.history.past import PastStates, commit_filter
from server.history.restore import restore_values
from server.history.versions import (
    ACTIONS,
    Deleted,
    Timeline,
    Version,
    Versions,
    deleted_documents,
    version_in,
)
from server.history.viewer import Viewer
from server.history.visible_changes import find_visible_changes
from server.index.budget import Budget
from server.query.parse import locale_to_write, read_status
from server.schema.model import Attribute, Schema, Type
from server.service.change_visibility import ChangeFilter, change_filter
from server.service.commit_visibility import visible_message
from server.service.document_write import Operation, Verb, require_write
from server.service.read import Caller, Params
from server.service.render import dumps
from server.service.write import Command, Result, Writes
from server.site.site import Site, State
from server.storage.git.branches import merge_base
from server.storage.git.log import Commit
from server.storage.git.times import CommitTimes
from server.storage.store import Store

_PART = 20  # Versions are searched in parts. The last visible change is usually in the first part.
HiddenUpdates = Mapping[str, Collection[str]]  # paths of documents, by commit id


@dataclass(frozen=True, slots=True)
class DocumentHistory:
    """The versions of one document that the caller may see, newest first.

    The parameters of the request, `params`, select a locale and a status.
    """

    caller: Caller
    type: Type
    document_id: str
    versions: list[Version]
    store: Store
    params: Params
    viewer: Viewer

    @property
    def state(self) -> State:
        return self.caller.state

    @property
    def attributes(self) -> list[Attribute]:
        return self.viewer.attributes(self.type)

    def select_versions(self, status: str = "") -> tuple[str, str, list[Version]]:
        locale = locale_to_write(self.params.get("locale"), self.type, self.state.settings)
        status = read_status(status or self.params.get("status"))
        if status == DRAFT and not may_read_drafts(self.caller.actor, self.type):
            raise forbidden(self.caller.actor, self.type.singular, "readDraft")
        versions = [v for v in self.versions if (v.locale, v.status) == (locale, status)]
        return locale, status, versions

    def content_at(
        self, commit: str, status: str = "", may_see: Callable[[str], bool] | None = None
    ) -> Content | None:
        """Return the document's content at a commit, or None if the document did not exist.

        If `commit` is "", the current content is returned. If the request selects the draft but there was
        none, the content of the published version is returned. Files for whose paths `may_see` returns False
        are ignored.
        """
        locale, status, _ = self.select_versions(status)
        for file_status in (DRAFT, PUBLISHED) if status == DRAFT else (status,):
            current = self.state.snapshot.get(self.type, self.document_id, locale, file_status)
            content = content_at(
                self.store,
                self.type,
                self.versions,
                current,
                (locale, file_status),
                commit,
                may_see,
                self.viewer,
            )
            if content is not None:
                return content
        return None


@dataclass(frozen=True, slots=True)
class CommittedDocument:
    """A document that a commit changed. `action` is "create", "update", "delete" or "rename"."""

    path: str
    type: Type
    document_id: str
    locale: str
    status: str
    action: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between an older and a newer version of a document.

    `since` is the commit of the older version, or "" if there is none or both versions are current. `to` is
    the commit of the newer version, or "" if it is current. `unread_keys` lists, for each version, the keys
    that are unknown or have invalid values according to the current schema.
    """

    differences: Mapping[str, Difference]
    since: str
    to: str
    locale: str
    status: str
    unread_keys: tuple[list[str], list[str]]


@dataclass(frozen=True, slots=True)
class Origins:
    """For each attribute, the version that last changed its value, and all versions that were examined."""

    attributes: Mapping[str, Blame]
    versions: Sequence[Version]
    locale: str
    status: str


class Histories:
    """The histories of a site's documents. This class is thread-safe."""

    def __init__(self, site: Site, past: PastStates, writes: Writes) -> None:
        self.site, self.past, self.writes = site, past, writes
        self._versions, self._former = Versions(site, past.log), FormerLayouts(past)

    def commits(
        self, caller: Caller, *, since: str = "", author: str = "", type_: str = ""
    ) -> list[tuple[Commit, list[CommittedDocument]]]:
        """Return all commits that changed visible documents, newest first, each with these documents.

        Raises ForbiddenError if the caller may not read the history, ValidationError if a filter is invalid,
        or ConflictError if there are no commits.
        """
        require_history(caller)
        caller.budget.take_turn()
        self.past.require_commits()
        is_selected = commit_filter(self.past, since, author)
        timeline = self._versions.timeline(caller.state)
        changes = self._changes(caller, timeline.head)
        return [
            (commit, documents)
            for commit in timeline.commits
            if is_selected(commit)
            and (documents := list(_committed_documents(commit, timeline, changes, type_)))
        ]

    def document_history(
        self, caller: Caller, api_id: str, document_id: str, params: Params, action: str = "read"
    ) -> DocumentHistory:
        """Return the history of a document. `document_id` is "" for a single type.

        Raises ForbiddenError if the caller lacks the history permission `action`, NotFoundError if the
        document is unknown, or ConflictError if there are no commits.
        """
        require_history(caller, action)
        state, type_ = caller.state, caller.state.schema.endpoints.get(api_id)
        if type_ is None or (type_.kind == "singleType") != (document_id == ""):
            raise NotFoundError()
        require(caller.actor, type_, "find")
        # This examines all commits and reads many files from git, so requests take turns.
        caller.budget.take_turn()
        self.past.require_commits()
        head = self.writes.head(caller)
        document_id = document_id or self._versions.single_type_document_id(state, type_, head)
        changes = self._changes(caller, head or self.past.require_commits())
        versions = self._versions.list_versions(state, type_, document_id, head, changes.visible_part)
        sees_drafts = _may_see_drafts(caller, type_)
        if not sees_drafts:
            versions = [version for version in versions if version.status != DRAFT]
        if not versions and not self._versions.is_there(state, type_, document_id, drafts=sees_drafts):
            raise NotFoundError()
        viewer = Viewer(caller.actor, state, (self.site.state.schema,) if caller.branch else ())
        return DocumentHistory(caller, type_, document_id, versions, self.store(state), params, viewer)

    def deleted_documents(self, caller: Caller, api_id: str) -> tuple[Type, Sequence[Deleted]]:
        """Return a content type and its deleted documents. Raises the same errors as `document_history`."""
        require_history(caller)
        type_ = caller.state.schema.endpoints.get(api_id)
        if type_ is None:
            raise NotFoundError()
        require(caller.actor, type_, "find")
        caller.budget.take_turn()
        self.past.require_commits()
        drafts, timeline = _may_see_drafts(caller, type_), self._versions.timeline(caller.state)
        seen, root = self._changes(caller, timeline.head).visible_part, self.site.root
        return type_, deleted_documents(caller.state, type_, timeline, root, seen, drafts=drafts)

    def visible_message(self, caller: Caller, hidden: HiddenUpdates, commit: Commit) -> str:
        timeline = self._versions.timeline(caller.state)
        changes = self._changes(caller, timeline.head)
        return visible_message(commit, timeline, changes, hidden.get(commit.id, ()))

    def hidden_updates(self, caller: Caller, commits: Iterable[Commit | None]) -> HiddenUpdates:
        """Return, by commit id, the paths of updated documents whose changes are all hidden from the caller.

        If this can't be decided without comparing contents, at most MAX_EXAMINED updates are compared, and
        the others count as hidden. Raises LimitError.
        """
        if caller.actor.everything:
            return {}
        claims, viewer = self._versions.timeline(caller.state).claims, Viewer(caller.actor, caller.state)
        updates = [
            (commit.id, version_in(commit, change, claims[change.path]))
            for commit in {one.id: one for one in commits if one}.values()
            for change in commit.changes
            if change.status == "M" and change.path in claims
        ]
        versions, store = [version for _, version in updates], self.store(caller.state)
        shown = self._shown(versions, viewer, store, caller.budget, unexamined=False)
        hidden: dict[str, set[str]] = {}
        for (commit_id, version), is_shown in zip(updates, shown, strict=True):
            if not is_shown:
                hidden.setdefault(commit_id, set()).add(version.path)
        return hidden

    def visible_versions(self, history: DocumentHistory, versions: Sequence[Version]) -> list[Version]:
        """Return the versions that contain a change which the caller may see.

        If this can't be decided without comparing contents, at most MAX_EXAMINED versions are compared, and
        the others are returned, too. Raises LimitError.
        """
        budget = history.caller.budget
        return [
            *compress(versions, self._shown(versions, history.viewer, history.store, budget, unexamined=True))
        ]

    def _shown(
        self, versions: Sequence[Version], viewer: Viewer, store: Store, budget: Budget, *, unexamined: bool
    ) -> list[bool]:
        viewers = [self.historical_viewer(version, viewer) for version in versions]
        return find_visible_changes(store, versions, viewers, budget, default=unexamined)

    def historical_viewer(self, version: Version, viewer: Viewer, *, and_before: bool = True) -> Viewer:
        """Return a copy of `viewer` that also hides attributes that were private at the version's commit.

        If `and_before` is set, it hides attributes that were private at the parent commit, too.
        """
        commits = (version.parent if and_before else "", version.commit.id if version.commit else "")
        return viewer.also_hiding(*(self._former.schema(commit) for commit in commits if commit))

    def _changes(self, caller: Caller, head: str) -> ChangeFilter:
        return change_filter(caller.actor, caller.state, self._former, head)

    def compare(self, history: DocumentHistory, since: str, since_status: str, to: str) -> Comparison:
        """Compare two versions of a document. `since` and `to` can be commits, tags, branches or times.

        If `to` is "", the newer version is the current one. If `since` and `since_status` are "", the older
        version is the one before the last change. If only `since` is "", both versions are from the same
        commit, and may differ in status. Raises ForbiddenError or ValidationError.
        """
        locale, status, versions = history.select_versions()
        to = self.past.resolve(to) if to else ""
        if since or since_status:
            since = self.past.resolve(since) if since else to
            sides = [(since, since_status), (to, "")]
        else:
            since = self._commit_before_last_change(history, versions, to)
            sides = [(since, ""), (to, "")] if since else [(to, "")]
        history, contents = self._contents_at(history, *sides)
        before, after = contents if len(contents) == 2 else (None, *contents)
        old, new = (content.values if content else None for content in (before, after))
        changes = differences(history.attributes, old, new, history.viewer)
        return Comparison(
            changes, since, to, locale, status, (_unread_keys(before, history), _unread_keys(after, history))
        )

    def origins(self, history: DocumentHistory) -> Origins:
        """Find out which version last changed each value, or each line of a text. Raises LimitError."""
        locale, status, versions = history.select_versions()
        oldest_first, budget = versions[:MAX_VERSIONS][::-1], history.caller.budget
        viewers = [
            self.historical_viewer(version, history.viewer, and_before=False) for version in oldest_first
        ]
        read = values_after(history.store, oldest_first, budget, viewers)
        visible = (
            None if values is None else visible_values(history.type, values, viewer)
            for values, viewer in zip(read, viewers, strict=True)
        )
        attributes = blame(zip(oldest_first, visible, strict=True), budget)
        return Origins(attributes, oldest_first, locale, status)

    def require_restore(self, history: DocumentHistory) -> Verb:
        """Return CREATE if a restore must create the document again, otherwise UPDATE.

        Raises ForbiddenError if the caller may not make this write.
        """
        require_history(history.caller)
        exists = history.type.kind == "singleType" or self._versions.is_there(
            history.state, history.type, history.document_id
        )
        verb = Verb.UPDATE if exists else Verb.CREATE
        require_write(history.caller.reader(history.type), verb, history.params)
        return verb

    def restore(
        self,
        history: DocumentHistory,
        at: str,
        status: str,
        fields: Sequence[str],
        *,
        if_match: str | None = None,
        dry_run: bool = False,
        message: str = "",
    ) -> Result:
        """Restore the attributes in `fields` to the values that they had at a commit, tag, branch or time.

        Raises NotFoundError if the document had no such version then, or any error of `Writes.write`.
        """
        verb = self.require_restore(history)
        history, (content,) = self._contents_at(history, (self.past.resolve(at), status))
        if content is None:
            raise NotFoundError(f'The document had no version with this locale and status at "{at}"')
        values = restore_values(history.attributes, content.values, fields, history.viewer)
        data: Any = read_json(dumps(values).decode())  # as in a request body, where numbers are texts
        document_id = history.document_id if history.type.kind != "singleType" else None
        expected_tag = if_match if verb is Verb.UPDATE else None
        operation = Operation(history.type, verb, document_id, history.params, data, expected_tag)
        return self.writes.write(Command(history.caller, [operation], dry_run=dry_run, message=message))

    def _contents_at(
        self, history: DocumentHistory, *sides: tuple[str, str]
    ) -> tuple[DocumentHistory, list[Content | None]]:
        """Return a copy of the history, and the document's content for each commit and status in `sides`.

        The copy also hides the attributes that were private at any of these commits.
        """
        schemas = [self._schema_at(commit, history) for commit, _ in sides]
        history = replace(history, viewer=history.viewer.also_hiding(*schemas))
        return history, [self._content_at(history, *side) for side in sides]

    def _content_at(self, history: DocumentHistory, commit: str, status: str = "") -> Content | None:
        schema, actor = self._schema_at(commit, history), history.caller.actor
        if schema is None or actor.everything:
            return history.content_at(commit, status)
        if not reveals_more(history.state.schema, schema, history.type.uid):
            return history.content_at(commit, status)
        try:
            entries = self.past.at(commit).known.entries
        except ConflictError:  # The configuration is invalid, so nothing was served at that commit.
            return None

        def may_see(path: str) -> bool:
            entry = entries.get(path)
            document = entry.document if entry else None
            if document is None or not may_find(actor, document.type.uid):
                return False
            return document.status != DRAFT or has_draft_permission(actor, document.type.uid)

        return history.content_at(commit, status, may_see)

    def _schema_at(self, commit: str, history: DocumentHistory) -> Schema | None:
        """Return the schema at a commit, or None if `commit` is "".

        If the schema was invalid then, return the last valid one before it. Raises ConflictError if it was
        invalid and the commit is not on the caller's branch.
        """
        if not commit:
            return None
        try:
            return self.past.schema(commit)
        except ConflictError:
            head = self.writes.head(history.caller) or self.past.require_commits()
            if merge_base(self.site.root, commit, head) == commit:
                return self._former.schema(commit)
            raise

    def store(self, state: State) -> Store:
        return Store(self.site.root, state.schema, state.settings, CommitTimes().timestamps)

    def _commit_before_last_change(self, history: DocumentHistory, versions: list[Version], to: str) -> str:
        """Return the parent of the last commit that made a visible change. Commits after `to` are ignored.

        Return "" if that commit has no parent, or `to` if no change is visible.
        """
        if to:
            self.past.log.update(to)
            earlier = {commit.id for commit in self.past.log.history_of(to)}
            versions = [version for version in versions if version.commit and version.commit.id in earlier]
        parts = (versions[start : start + _PART] for start in range(0, len(versions), _PART))
        last = next((version for part in parts for version in self.visible_versions(history, part)), None)
        return last.parent if last else to or self.past.require_commits()


def require_history(caller: Caller, action: str = "read") -> None:
    if not caller.actor.may("history", action):
        raise forbidden(caller.actor, "history", action, is_type=False)


def _committed_documents(
    commit: Commit, timeline: Timeline, changes: ChangeFilter, type_: str
) -> Iterator[CommittedDocument]:
    for each in commit.changes:
        change = changes.visible_part(commit, each)
        claim = timeline.claims.get(change.path) if change else None
        if (
            change is None
            or claim is None
            or (type_ and type_ not in (claim.type.singular, claim.type.plural))
        ):
            continue
        status, action = DRAFT if claim.draft else PUBLISHED, ACTIONS.get(change.status, "update")
        yield CommittedDocument(change.path, claim.type, claim.document_id, claim.locale, status, action)


def _may_see_drafts(caller: Caller, type_: Type) -> bool:
    drafts = may_read_drafts(caller.actor, type_)
    if type_.draft_key and not drafts:
        raise forbidden(caller.actor, type_.singular, "readDraft")
    return drafts


def _unread_keys(content: Content | None, history: DocumentHistory) -> list[str]:
    names = content.invalid_keys if content else ()
    return [name for name in names if history.viewer.may_see_key(history.type, name)]
