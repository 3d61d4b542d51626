"""Plan of a merge: the new content of each changed file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from server.auth.draft_visibility import may_read_drafts, may_read_source_of
from server.auth.permissions import Actor, may_find
from server.config.model import Settings
from server.documents.document import DRAFT
from server.documents.path_rules import Layout
from server.documents.three_way_merge import MergeResult
from server.documents.timestamps import now
from server.errors import ConflictError, ForbiddenError, MergeConflictError, SetupError
from server.history.branching import CommittedFiles
from server.history.commit_files import configuration_files, read_configuration
from server.history.exposure import reveals_more
from server.history.merging.check import needs_full_access, require_merge
from server.history.merging.conflicts import ConflictCollector, Resolution, add_hidden_conflicts
from server.history.merging.documents import (
    ConflictDecisions,
    Key,
    ThreeVersions,
    read_changed_documents,
    require_hashed_passwords,
    resolved_values,
    version_name,
    write_merged,
)
from server.history.merging.late_migrations import OURS, THEIRS, MigratedSides, apply_missing_migrations
from server.history.merging.sides import (
    FileSides,
    MergeSides,
    SideVersion,
    changed_files_of,
    is_plain,
    read_files,
    require_no_nesting,
)
from server.history.past import PastState, PastStates
from server.history.viewer import Viewer
from server.schema.model import Schema
from server.site.configure import is_configuration
from server.site.migrations.draft import MIGRATIONS
from server.site.site import State
from server.storage.changeset import Changeset
from server.storage.git.repository import GitFile
from server.storage.git.times import CommitTimes
from server.storage.git.tree import Blob, changed_files, merge_text, read_tree, write_blob
from server.storage.store import Store
from server.write.context import Context, Values
from server.write.faults import error_of_body
from server.write.passwords import hash_passwords
from server.write.readable import ReadAccess
from server.write.source import has_passwords
from server.write.validate import Validator
from server.write.write import Writer

_IMPOSSIBLE_MIGRATION = (
    "One of the branches lacks a kept migration that can't be applied there, or that would lose values "
    "there. Ask somebody with full access to merge: the response then contains the reason"
)
Outcome = str | GitFile | None  # text, a git object, or None for a deleted file


@dataclass(slots=True)
class Plan:
    """The files and documents that a merge changes on the target branch.

    `skipped` is the reason why missing migrations were not applied, or "" if they were applied.
    """

    sides: MergeSides
    migrated: MigratedSides | None = None
    their_schema: Schema | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    documents: dict[Key, ThreeVersions] = field(default_factory=dict)
    skipped: str = ""

    @property
    def is_fast_forward(self) -> bool:
        return self.sides.is_fast_forward and (
            not self.migrated or self.migrated.sides.theirs == self.sides.theirs
        )


@dataclass(frozen=True, slots=True)
class Planner:
    """Planner of the merges that an actor requests.

    If `whole_repository` is set, files outside the site's folder are merged too, and the merged configuration
    may be invalid.
    """

    past: PastStates
    actor: Actor
    current_settings: Settings
    resolution: Resolution
    whole_repository: bool = False

    @property
    def root(self) -> Path:
        return self.past.site.root

    def plan(self, sides: MergeSides, changeset: Changeset) -> Plan:
        """Apply the missing migrations to each side, and plan the merge.

        `changeset` must read the files of the target branch. Raises ForbiddenError if the actor lacks a
        permission, MergeConflictError if there are unresolved conflicts, or another ApiError if the branches
        can't be merged.
        """
        self._require_configuration(sides)
        skipped = ""
        try:
            brought = apply_missing_migrations(self.past, sides)
        except ConflictError as error:
            if not self.whole_repository:
                raise self._without_reason(error) from error
            # Commits from the remote are merged even without their migrations. `bifolio check` then reports
            # the documents that lack them.
            brought, skipped = MigratedSides(sides), error.message
        if brought.sides.ours != sides.ours:
            files = CommittedFiles(self.root, self.past.at(brought.sides.ours).known.blobs)
            changeset = Changeset(self.root, files)
        try:
            plan = self._plan(brought.sides, changeset)
        except MergeConflictError as error:
            if skipped:
                raise MergeConflictError(skipped, error.details) from error
            raise self._with_skipped_migrations(error, sides, brought.skipped) from error
        if brought.sides != sides:
            only_brought = {p: text for p, text in brought.our_changes.items() if p not in plan.outcomes}
            plan.sides, plan.migrated = sides, replace(brought, our_changes=only_brought)
            plan.outcomes |= only_brought
        plan.skipped = skipped
        return plan

    def _without_reason(self, error: ConflictError) -> ConflictError:
        # The reason depends on documents and values that may be hidden from the actor.
        return error if self.actor.everything else ConflictError(_IMPOSSIBLE_MIGRATION)

    def _require_configuration(self, sides: MergeSides) -> None:
        if self.actor.everything:
            return
        for path, file in changed_files_of(self.root, sides, whole_repository=self.whole_repository).items():
            if not file.is_merged and (is_configuration(path) or path.startswith(f"{MIGRATIONS}/")):
                raise needs_full_access(self.actor)

    def require_result(self, plan: Plan, commit: str) -> None:
        """Raise ForbiddenError if the actor lacks the permission for one of the changes in the merge commit.

        The changes that migrations make are checked too.
        """
        if self.actor.everything or not plan.migrated:
            return
        differing = changed_files(self.root, plan.sides.ours, commit).items()
        files = {path: FileSides(ours, ours, merged) for path, (ours, merged) in differing}
        served = self.past.at(plan.sides.ours).state
        store = Store(self.root, served.schema, served.settings, CommitTimes().timestamps)
        documents = read_changed_documents(store, files)
        paths = {path for three in documents.values() for path in three.paths}
        require_merge(self.actor, documents, {p: file for p, file in files.items() if p not in paths})
        self._require_no_exposure(served.schema, plan.migrated.sides, documents)

    def _with_skipped_migrations(
        self, error: MergeConflictError, sides: MergeSides, skipped: Sequence[str]
    ) -> MergeConflictError:
        if not skipped:
            return error
        ours = read_tree(self.root, sides.ours, (MIGRATIONS,))
        lacking = {name: THEIRS if f"{MIGRATIONS}/{name}.yaml" in ours else OURS for name in skipped}
        lacks = "; ".join(
            f"{side} lacks {', '.join(name for name in skipped if lacking[name] == side)}"
            for side in dict.fromkeys(lacking.values())
        )
        what = (
            f"{lacks[0].upper()}{lacks[1:]}. A merge does not execute the code of migrations. Bring that "
            "branch along, then merge again: take migrations/ and the schemas from the other branch, run "
            "bifolio migrate apply --scripts --write, and commit (docs/migrate.md#merge-with-git)"
        )
        rows = [{"name": n, "lackedBy": "ours" if side == OURS else "theirs"} for n, side in lacking.items()]
        return MergeConflictError(what, {**error.details, "migrations": rows})

    def _plan(self, sides: MergeSides, changeset: Changeset) -> Plan:
        """Plan a merge of the commits without applying migrations. Raises the same errors as `plan`."""
        plan, unmerged = Plan(sides), ConflictCollector(self.resolution)
        files, before = (
            changed_files_of(self.root, sides, whole_repository=self.whole_repository),
            self.past.at(sides.ours),
        )
        schema, settings = self._merge_configuration(plan, files, before, unmerged)
        store = Store(self.root, schema, settings, CommitTimes().timestamps)
        plan.documents = read_changed_documents(store, files)
        if not self.whole_repository:
            self._require_no_exposure(schema, sides, plan.documents)
            if any(has_passwords(schema, three.type) for three in plan.documents.values()):
                plan.their_schema = self.past.schema(sides.theirs)
        paths = {path for three in plan.documents.values() for path in three.paths}
        others = {path: file for path, file in files.items() if path not in paths}
        require_merge(self.actor, plan.documents, others)
        snapshot = replace(before.state.snapshot, schema=schema)
        context = Context(snapshot, settings, store, changeset, now())
        for key, three in plan.documents.items():
            if three.action:
                self._add_document(plan, context, unmerged, (key, three), files)
        for path, file in others.items():
            if path not in plan.outcomes and not file.is_merged:
                self._add_file(plan, unmerged, path, file)
        unmerged.require_known()
        hiding = self._schemas_of(sides) if unmerged.documents else ()
        unmerged.require_none(Viewer(self.actor, State(settings, schema, snapshot), hiding))
        ours = {path: file.ours for path, file in files.items()}
        require_no_nesting({path for path, file in {**ours, **plan.outcomes}.items() if file is not None})
        return plan

    def _merge_configuration(
        self, plan: Plan, files: Mapping[str, FileSides], before: PastState, unmerged: ConflictCollector
    ) -> tuple[Schema, Settings]:
        names = {path: Blob("", 0) for path in files}
        changed = [path for path in configuration_files(names) if not files[path].is_merged]
        if not changed:
            return before.state.schema, before.state.settings
        if not self.actor.everything:
            raise needs_full_access(self.actor)
        for path in changed:
            self._add_file(plan, unmerged, path, files[path])
        blobs = dict(before.known.blobs)
        for path in changed:
            outcome = plan.outcomes.get(path, files[path].ours)
            blobs.pop(path, None)
            if isinstance(outcome, str):
                blobs[path] = Blob(write_blob(self.root, outcome.encode()), len(outcome))
            elif outcome:
                blobs[path] = Blob(outcome.id, 0)
        try:
            configuration = read_configuration(self.root, blobs)
        except SetupError as error:
            if self.whole_repository:
                return before.state.schema, before.state.settings
            raise ConflictError(f"The merged site would be invalid: {error}") from error
        return configuration.schema, configuration.settings

    def _require_no_exposure(
        self, schema: Schema, sides: MergeSides, documents: Mapping[Key, ThreeVersions]
    ) -> None:
        """Raise ForbiddenError if the actor lacks full access and the merge could reveal hidden values."""
        merged = [three for three in documents.values() if three.action]
        if self.actor.everything or not merged:
            return
        theirs = self.past.layout(sides.theirs)
        uids = {three.type.uid for three in merged}
        # On the branch, the file can belong to a content type that hides more.
        others = {three.type.uid for three in merged if not _is_of_same_type(three, theirs)}
        for uid in sorted(uids):
            if uid in others or reveals_more(schema, theirs.schema, uid, if_in_doubt=True):
                raise ForbiddenError(
                    "Merging this branch requires full access, because it hides attributes or drafts of "
                    f"{uid} that the target branch does not hide"
                )

    def _schemas_of(self, sides: MergeSides) -> tuple[Schema, ...]:
        # Each of these schemas can hide values in conflicts.
        if self.whole_repository:
            return ()
        return tuple(self.past.schema(commit) for commit in (sides.base, sides.ours, sides.theirs))

    # --- files -----------------------------------------------------------------------------------------

    def _add_file(self, plan: Plan, unmerged: ConflictCollector, path: str, file: FileSides) -> None:
        if file.is_theirs:
            plan.outcomes[path] = file.theirs
            return
        plain = is_plain(path, file.base, file.ours, file.theirs)
        text = self._merge_text(file) if plain else None
        if text is not None:
            plan.outcomes[path] = text
        elif unmerged.side_of_file(path) == "theirs":
            plan.outcomes[path] = file.theirs

    def _merge_text(self, file: FileSides) -> str | None:
        sides = (file.base, file.ours, file.theirs)
        read = read_files(self.root, sides)
        data = [read.get(side.id) if side else None for side in sides]
        try:
            base, ours, theirs = (one.decode() for one in data if one is not None and b"\0" not in one)
        except ValueError:  # On one side, the file is missing, is binary, or is not UTF-8.
            return None
        return merge_text(base, ours, theirs)

    # --- documents -------------------------------------------------------------------------------------

    def _add_document(
        self,
        plan: Plan,
        context: Context,
        unmerged: ConflictCollector,
        entry: tuple[Key, ThreeVersions],
        files: Mapping[str, FileSides],
    ) -> None:
        (key, three), ours, theirs = entry, entry[1].ours, entry[1].theirs
        merged = add_hidden_conflicts(three.merged(), three, self._reading(context, three))
        if merged.conflicts:
            name = version_name(key, three.type)
            choices = unmerged.choices(key, name, three, merged.conflicts)
            if choices is None:
                return
            values = self._resolve(context, three, merged, choices)
        else:
            choices, values = None, merged.values
        if values is not None and plan.their_schema:
            require_hashed_passwords(key, three, values, plan.their_schema, choices[1] if choices else ())
        settled = {str(c.path[0]) if c.path else "" for c in merged.conflicts if len(c.path) < 2}
        texts = write_merged(context, three, values, ConflictDecisions(unmerged.side_of_file, settled))
        outcomes: dict[str, Outcome] = dict(texts)
        if theirs and outcomes.get(theirs.path) == theirs.data.decode():
            outcomes[theirs.path] = files[theirs.path].theirs
        new_paths = [
            path for path, outcome in outcomes.items() if outcome is not None and not _is_of(ours, path)
        ]
        occupied = [
            path
            for path in new_paths
            if path in files and files[path].ours and not self._is_vacated(plan, path)
        ]
        if any(unmerged.side_of_file(path) != "theirs" for path in occupied):
            return  # Our side has a different document at this path, which is a conflict.
        for path, outcome in outcomes.items():
            if outcome is not None or plan.outcomes.get(path) is None:
                plan.outcomes[path] = outcome

    def _reading(self, context: Context, three: ThreeVersions) -> ReadAccess:
        draft, schema = three.some_document.status == DRAFT, context.snapshot.schema
        private = may_read_source_of(self.actor, three.type, schema, draft=draft)
        versions = not draft or may_read_drafts(self.actor, three.type)
        return ReadAccess(self.actor, schema, private, versions)

    def _is_vacated(self, plan: Plan, path: str) -> bool:
        # The merge could delete or move the document at this path.
        documents = [three for three in plan.documents.values() if three.ours and three.ours.path == path]
        return any(three.theirs is None or three.theirs.path != path for three in documents)

    def _resolve(
        self,
        context: Context,
        three: ThreeVersions,
        merged: MergeResult,
        choices: tuple[dict[str, str], dict[str, Any]],
    ) -> Values | None:
        sides, given = choices
        values = resolved_values(three, merged, sides)
        if values is None or not given:
            return values
        type_, actor = three.type, self.actor
        [data] = hash_passwords(context.snapshot.schema, [(type_, given)])
        settings = context.settings
        locales = tuple(dict.fromkeys((settings.locales.default, *settings.locales.available)))
        reading = self._reading(context, three)
        validator = Validator(
            context.snapshot,
            locales,
            partial(may_find, actor),
            partial(may_read_drafts, actor),
            reads_version=reading.all_versions,
            reads_private=reading.private_values,
        )
        change = validator.change(type_, data, values)
        if change.faults:
            raise error_of_body(change.faults, context.snapshot.schema, type_, data)
        cleared = {**values, **dict.fromkeys(change.links, ())}
        return Writer(context).values_after(type_, three.some_document.document_id, cleared, change)


def _is_of(version: SideVersion | None, path: str) -> bool:
    return version is not None and version.path == path


def _is_of_same_type(three: ThreeVersions, layout: Layout) -> bool:
    claim = layout.claim(three.theirs.path) if three.theirs else None
    return three.theirs is None or (claim is not None and claim.type.uid == three.type.uid)
