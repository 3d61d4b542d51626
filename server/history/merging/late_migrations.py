"""Migrations that only one side of a merge contains, and their application to the other side."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from server.documents.path_rules import Layout
from server.documents.timestamps import now
from server.errors import ConflictError, SetupError, ValidationError
from server.formats.tree import SyntaxProblem
from server.history.branching import CommittedFiles
from server.history.commit_files import Blobs
from server.history.merging.sides import MergeSides
from server.history.past import PastStates
from server.site.configure import Configuration
from server.site.migrations.draft import MIGRATIONS, Draft, Finding
from server.site.migrations.migration import Migration, migration_paths, read_migration, renumbered_path
from server.site.migrations.plan import ARGUMENTS, OPERATIONS, unexpected_errors_refused
from server.storage.changeset import Changeset
from server.storage.files import Signature, size_signature
from server.storage.git.branch_commit import CommitMetadata, make_commit
from server.storage.git.commit import Person
from server.storage.git.times import CommitTimes
from server.storage.git.tree import changed_files, read_blobs, read_tree
from server.storage.read import parse
from server.storage.store import Store
from server.write.context import Context

OURS, THEIRS, BASE = "the target branch", "the merged branch", "the common ancestor"
_MESSAGE = "Apply kept migrations\n"
MAX_MIGRATIONS = 100  # limit for one merge; each takes about 0.05 s, even if it changes no documents


@dataclass(frozen=True, slots=True)
class MigratedSides:
    """The sides of a merge, after the missing migrations have been applied to them.

    `our_changes` maps the path of each file that the migrations changed in ours to its new text, or to None
    if it was deleted. `document_counts` maps each migration to its number of changed documents. `skipped`
    lists the migrations that were not applied.
    """

    sides: MergeSides
    our_changes: Mapping[str, str | None] = field(default_factory=dict)
    document_counts: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    document_names: tuple[str, ...] = ()


def apply_missing_migrations(past: PastStates, sides: MergeSides) -> MigratedSides:
    """Apply to each side of a merge the migrations that only the other side contains.

    Raises ConflictError if there are too many migrations, if one can't be applied, or if one would lose
    values that were changed on the side that lacks it.
    """
    root = past.site.root
    base, ours, theirs = (_migration_texts(root, commit) for commit in (sides.base, sides.ours, sides.theirs))
    if not ours and not theirs:
        return MigratedSides(sides)
    added = _AddedMigrations.between(base, ours, theirs)
    if (count := len(added.by_ours) + len(added.by_theirs)) > MAX_MIGRATIONS:
        fix = "apply them with `bifolio migrate apply`, and merge with git"
        raise ConflictError(
            f"The branches differ by {count} migrations, but a merge applies at most {MAX_MIGRATIONS}; {fix}"
        )
    our_paths, their_paths = (changed_files(root, sides.base, each).keys()
                              for each in (sides.ours, sides.theirs))  # fmt: skip
    both = our_paths & their_paths
    only: tuple[Set[str] | None, ...] = (both, our_paths if added.by_theirs else both, their_paths)
    if any(OPERATIONS[each.operation].needs_all_documents for each in added.migrations):
        only = (None, None, None)
    replays = (
        _Replay(past, BASE, sides.base, only[0], {**added.by_ours, **added.by_theirs}),
        _Replay(past, OURS, sides.ours, only[1], added.by_theirs),
        _Replay(past, THEIRS, sides.theirs, only[2], added.by_ours, added.new_paths),
    )
    enums = _enumeration_values(past, sides, added.migrations)
    for replay in replays:
        replay.run(enums, replays[0].losses)
    documents = Counter[str]()
    for replay in replays[1:]:
        documents.update(replay.documents)
    results = [replay.commit_result() for replay in replays]
    brought = MergeSides(results[0], results[1], results[2])
    missing = sorted({name for replay in replays[1:] for name in replay.skipped})
    ours_after = replays[1]
    return MigratedSides(
        brought, ours_after.changes(), documents, tuple(missing), tuple(ours_after.document_names)
    )


def _migration_texts(root: Path, commit: str) -> dict[str, str]:
    files = read_tree(root, commit, (MIGRATIONS,))
    paths = list(migration_paths(files))
    texts = read_blobs(root, [files[path].id for path in paths])
    return {path: (data or b"").decode(errors="replace") for path, data in zip(paths, texts, strict=True)}


@dataclass(frozen=True, slots=True)
class _AddedMigrations:
    """The texts of the migrations that only one side has added since base, by path.

    If both sides added different migrations at the same path, `new_paths` maps this path to a new path for
    the migration in theirs.
    """

    by_ours: Mapping[str, str]
    by_theirs: Mapping[str, str]
    new_paths: Mapping[str, str]

    @classmethod
    def between(
        cls, base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str]
    ) -> "_AddedMigrations":
        by_ours = {p: text for p, text in ours.items() if p not in base and theirs.get(p) != text}
        by_theirs, renamed = dict[str, str](), dict[str, str]()
        for path, text in theirs.items():
            if path in base or ours.get(path) == text:
                continue
            if path in ours:
                renamed[path] = renumbered_path((*ours, *theirs, *renamed.values()), path)
            by_theirs[renamed.get(path, path)] = text
        return cls(by_ours, by_theirs, renamed)

    @property
    def migrations(self) -> list[Migration]:
        return [_read(path, text) for path, text in {**self.by_ours, **self.by_theirs}.items()]


def _read(path: str, text: str) -> Migration:
    try:
        with unexpected_errors_refused():
            return read_migration(path, text, ARGUMENTS)
    except ValidationError as error:
        raise ConflictError(f"A migration is invalid: {path}: {error.message}") from error
    except SetupError as error:
        raise ConflictError(f"A migration is invalid: {error}") from error


def _enumeration_values(
    past: PastStates, sides: MergeSides, migrations: Iterable[Migration]
) -> Mapping[str, tuple[str, ...]]:
    if all(each.arguments.get("type") != "enumeration" for each in migrations):
        return {}
    types = (t for commit in (sides.ours, sides.theirs) for t in past.schema(commit).types.values())
    return {f"{t.uid}.{a.name}": tuple(a.enum) for t in types for a in t.attributes.values() if a.enum}


class _LoadedFiles(CommittedFiles):
    """Files of a commit. Those at `paths` are loaded in advance."""

    def __init__(self, root: Path, blobs: Blobs, paths: Iterable[str]) -> None:
        super().__init__(root, blobs)
        ids = list(dict.fromkeys(blobs[path].id for path in paths if path in blobs))
        self._loaded = dict(zip(ids, read_blobs(root, ids), strict=True))

    def read(self, path: str) -> tuple[bytes, Signature]:
        blob = self.blobs.get(path)
        data = self._loaded.get(blob.id) if blob else None
        return super().read(path) if data is None else (data, size_signature(len(data)))


# --- one side -------------------------------------------------------------------------------------

_Loss = tuple[str, object, str, str]  # path, path of the value, message, value


@dataclass(slots=True)
class _Replay:
    """Replay of migrations on one side of a merge.

    If `document_paths` is None, all documents are migrated. Otherwise, only those at these paths are
    migrated. The results are in the field `documents` and the fields after it.
    """

    past: PastStates
    name: str
    commit: str
    document_paths: Set[str] | None
    missing_migrations: Mapping[str, str]
    new_paths: Mapping[str, str] = field(default_factory=dict)
    documents: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)
    document_names: dict[str, None] = field(default_factory=dict)
    losses: set[_Loss] = field(default_factory=set)
    changeset: Changeset | None = None
    files: CommittedFiles | None = None

    def run(self, enums: Mapping[str, tuple[str, ...]], base_losses: Set[_Loss]) -> None:
        """Apply the migrations of both sides in order.

        Raises ConflictError if a migration that this side lacked can't be applied, or if it would lose values
        that it does not also lose on the merge base (`base_losses`).
        """
        root, state = self.past.site.root, self.past.at(self.commit)
        blobs = state.known.blobs
        roots = (f"{MIGRATIONS}/", "content-types/", "site.yaml")
        self.files = _LoadedFiles(
            root,
            blobs,
            [
                p
                for p in blobs
                if p.startswith(roots) or self.document_paths is None or p in self.document_paths
            ],
        )
        self.changeset = Changeset(root, self.files)
        for old, new in self.new_paths.items():
            self.changeset.put(new, self.changeset.text(old))
            self.changeset.delete(old)
        own = {
            self.new_paths.get(path, path) for path in migration_paths(blobs)
        } - self.missing_migrations.keys()
        store = Store(root, state.state.schema, state.state.settings, CommitTimes().timestamps)
        context = Context(state.state.snapshot, state.state.settings, store, self.changeset, now())
        for path in migration_paths({*own, *self.missing_migrations}):
            if path in self.missing_migrations:
                self.changeset.put(path, self.missing_migrations[path])
            migration = _read(path, self.changeset.text(path))
            if OPERATIONS[migration.operation].runs_code:
                self.skipped += [migration.label] if path in self.missing_migrations else []
                continue
            self._apply(context, migration, enums, base_losses)

    def _apply(
        self,
        context: Context,
        migration: Migration,
        enums: Mapping[str, tuple[str, ...]],
        base_losses: Set[_Loss],
    ) -> None:
        assert self.changeset is not None
        is_new = migration.path in self.missing_migrations
        try:
            with unexpected_errors_refused():
                draft, before = self._draft(context, enums)
                OPERATIONS[migration.operation].plan(draft, migration, is_new=is_new)
                refusals = [found for found in draft.refusals if not found.is_syntax]
                reason = "; ".join(draft.describe_findings(refusals))
        except ValidationError as error:
            reason = error.message
        if reason and is_new:
            self._skip_or_raise(migration, reason)
            return
        if reason:
            return
        losses = {_loss(draft, before, found): found for found in draft.losses}
        real = [found for loss, found in losses.items() if loss not in base_losses]
        self.losses |= losses.keys()
        if real and self.name != BASE:
            if is_new:
                what = "; ".join(draft.describe_findings(real[:20]))
                raise ConflictError(
                    f"{migration.label} would lose values that {self.name} has changed: {what}. Remove these "
                    "values there first",
                    {"files": sorted({found.path for found in real})},
                )
            return
        self.changeset.adopt(draft.context.changeset)
        self._note(migration, draft)

    def _draft(self, context: Context, enums: Mapping[str, tuple[str, ...]]) -> tuple[Draft, Configuration]:
        assert self.changeset is not None
        attempt = Changeset(self.past.site.root, self.files)
        attempt.adopt(self.changeset)
        draft = Draft(
            replace(context, changeset=attempt), lossy=True, allowed_paths=self.document_paths, enums=enums
        )
        before = draft.configuration()
        schema, settings = before.schema, before.settings
        store = Store(self.past.site.root, schema, settings, CommitTimes().timestamps)
        snapshot = replace(context.snapshot, schema=schema)
        draft.context = replace(draft.context, snapshot=snapshot, settings=settings, store=store)
        return draft, before

    def _skip_or_raise(self, migration: Migration, reason: str) -> None:
        """Skip a migration that can't be applied, or raise ConflictError.

        The migration is skipped on the merge base, or if an earlier migration was skipped.
        """
        if self.skipped or self.name == BASE:
            self.skipped.append(migration.label)
            return
        raise ConflictError(
            f"{self.name} lacks {migration.label}, which can't be applied there: {reason}. Correct "
            "this there, or merge with git and then run bifolio migrate apply"
        )

    def _note(self, migration: Migration, draft: Draft) -> None:
        if not draft.documents:
            return
        self.documents[migration.label] += len(draft.documents)
        if self.document_paths is not None:
            self.document_paths = self.document_paths | draft.documents
        after = draft.configuration()
        layout = Layout(after.schema, after.settings)
        claims = (layout.claim(path) for path in sorted(draft.documents))
        self.document_names |= {
            f"{claim.type.singular}/{claim.document_id}": None for claim in claims if claim
        }

    def changes(self) -> dict[str, str | None]:
        writes = self.changeset.writes() if self.changeset else ()
        return {write.path: write.data.decode() if write.data is not None else None for write in writes}

    def commit_result(self) -> str:
        """Commit the changes and return the commit id.

        If the migrations changed nothing, return the id of the original commit.
        """
        changes = self.changes()
        if not changes:
            return self.commit
        committer = Person.parse(self.past.site.state.settings.git.committer)
        files = {path: None if text is None else text.encode() for path, text in changes.items()}
        return make_commit(
            self.past.site.root, (self.commit,), files, CommitMetadata(_MESSAGE, committer, committer)
        )


def _loss(draft: Draft, before: Configuration, finding: Finding) -> _Loss:
    claim = Layout(before.schema, before.settings).claim(finding.path)
    text = draft.original_texts.get(finding.path) or draft.text_or_none(finding.path) or ""
    try:
        value: object = parse(finding.path, text, claim.type.body if claim else None)
        for key in finding.key_path:
            value = value[key]  # type: ignore[index]
    except (SyntaxProblem, LookupError, TypeError):
        value = None
    return finding.path, finding.key_path, finding.message, repr(value)


def migration_counts(migrated: MigratedSides) -> Iterator[tuple[str, int, bool]]:
    for name, count in sorted(migrated.document_counts.items()):
        yield name, count, True
    for name in migrated.skipped:
        yield name, 0, False
