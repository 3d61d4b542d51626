"""Migrations that are being planned, with their edits and problems."""

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from server.config.model import FILE
from server.documents.file_keys import is_marked_as_draft
from server.documents.path_rules import ENDINGS, MARKDOWN, Layout, PathClaim
from server.errors import ConflictError, SetupError, StorageError, ValidationError, place_of, with_fix
from server.formats.text_positions import KeyPath, line_and_column, nearest_position
from server.formats.tree import SyntaxProblem, Tree
from server.paths import TYPES
from server.problems import Problem
from server.schema.model import Schema, Type
from server.site.configure import Configuration, configure
from server.site.migrations.edits import Edits, edit_text
from server.site.migrations.places import find_instances, types_containing
from server.storage.read import parse, positions_of
from server.write.context import Context

MIGRATIONS = "migrations"
MAX_SHOWN = 20  # limit on the documents in one error message
# Files with these prefixes are the configuration of a site.
_CONFIGURATION = (FILE, f"{TYPES}/")
# Errors that occur if the file system does not accept the name of a file.
_NAME_ERRORS = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL)
# Raises ForbiddenError if a document's file must not be shown.
PermitFile = Callable[[str], None]
# Returns the edits to one mapping of attributes. Their paths begin at the mapping.
Editor = Callable[["AttributeMapping"], Edits]


def permit_all(path: str) -> None: ...


@dataclass(frozen=True, slots=True)
class AttributeMapping:
    """The attribute values of a document or, if `key_path` is not empty, of the component at `key_path`."""

    path: str
    claim: PathClaim
    key_path: KeyPath
    values: Mapping[str, Tree]


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason why a migration is impossible, or a value that it would lose."""

    path: str
    key_path: KeyPath
    message: str
    fix: str = ""
    line: int | None = None
    # whether the reason is that the file can't be parsed
    is_syntax: bool = False


@dataclass(slots=True)
class Draft:
    """A migration that is being planned.

    `refusals` are the reasons why it is impossible. `losses` are the values that it would lose, which is
    allowed only if `lossy` is set. `documents` are the paths of the documents that it changes.
    """

    context: Context
    lossy: bool = False
    refusals: list[Finding] = field(default_factory=list)
    losses: list[Finding] = field(default_factory=list)
    documents: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    # problems that the documents or the site have after the migration
    warnings: list[str] = field(default_factory=list)
    # Arguments kept in the migration's file in addition to those of the command.
    more_arguments: dict[str, Any] = field(default_factory=dict)
    # All files, in order.
    paths: dict[str, None] = field(default_factory=dict)
    # The text of each changed file before the change, or None for a new file.
    original_texts: dict[str, str | None] = field(default_factory=dict)
    # paths of the documents that the migration can change; None for all
    allowed_paths: Set[str] | None = None
    # whether the migration is allowed to publish documents that are marked as drafts
    may_publish: bool = False
    # whether files that belong to no document can become documents
    may_adopt: bool = False
    # the definitions of enumerations that a retype must not derive from documents, by `TYPE.attribute`
    enums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # called before a document is read, because a migration's findings contain values
    permit: PermitFile = permit_all

    def __post_init__(self) -> None:
        changeset, roots = self.context.changeset, (TYPES, MIGRATIONS, *self.context.layout.roots)
        listed = {*changeset.list_files(roots), FILE, *(path for path, _ in changeset.texts())}
        own = (FILE, f"{TYPES}/", f"{MIGRATIONS}/")
        self.paths = dict.fromkeys(
            path
            for path in sorted(listed)
            if (self.allowed_paths is None or path in self.allowed_paths or path.startswith(own))
            and (changeset.exists(path) or not changeset.changes(path))
        )

    def probe(self) -> "Draft":
        return Draft(self.context, permit=self.permit)

    # --- files ---------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self.context.changeset.exists(path)

    def text(self, path: str) -> str:
        return self.context.changeset.text(path)

    def put(self, path: str, text: str) -> None:
        self._keep(path)
        self.context.changeset.put(path, text)
        self.paths[path] = None

    def move(self, path: str, new: str) -> None:
        """Move a file to a new path.

        The migration is refused if a file already exists at the new path, or if the file to be moved is not
        text.
        """
        self.permit(path)
        if self.exists(new):
            self.refuse(new, "this file already exists", f"rename it; {path} must be moved here")
            return
        try:
            text = self.text(path)
        except ConflictError:
            self.refuse(path, "this file is not text", f"move it to {new} by hand")
            return
        self.remove(path)
        self.put(new, text)

    def remove(self, path: str) -> None:
        self._keep(path)
        self.context.changeset.delete(path)
        del self.paths[path]

    def _keep(self, path: str) -> None:
        if path not in self.original_texts:
            self.original_texts[path] = self.text(path) if self.exists(path) else None

    @property
    def changed_paths(self) -> list[str]:
        return sorted(path for path, old in self.original_texts.items() if old != self.text_or_none(path))

    def text_or_none(self, path: str) -> str | None:
        return self.text(path) if self.exists(path) else None

    # --- findings ------------------------------------------------------------------------------

    def refuse(self, path: str, message: str, fix: str = "", key_path: KeyPath = ()) -> None:
        self.refusals.append(Finding(path, key_path, message, fix))

    def add_loss(self, path: str, key_path: KeyPath, message: str) -> None:
        self.losses.append(Finding(path, key_path, message))

    def describe_findings(self, findings: Iterable[Finding]) -> Iterator[str]:
        for found in findings:
            line, column = found.line, None
            if line is None and found.key_path:
                text = self.original_texts.get(found.path) or self.text_or_none(found.path) or ""
                line, column = line_and_column(
                    nearest_position(positions_of(found.path, text), found.key_path)
                )
            yield f"{place_of(found.path, line, column)}: {with_fix(found.message, found.fix)}"

    def require_possible(self) -> None:
        if self.refusals:
            raise ValidationError(self._listed("The migration is not possible", self.refusals))
        if self.losses and not self.lossy:
            count = len({found.path for found in self.losses})
            what = f"The migration would lose values in {count:,} {'file' if count == 1 else 'files'}"
            raise ValidationError(self._listed(f"{what} (allow this with --lossy)", self.losses))

    def _listed(self, what: str, findings: list[Finding]) -> str:
        lines = list(self.describe_findings(findings[:MAX_SHOWN]))
        if len(findings) > MAX_SHOWN:
            lines.append(f"… and {len(findings) - MAX_SHOWN:,} more")
        return what + ":\n" + "\n".join(f"  {line}" for line in lines)

    # --- configuration -------------------------------------------------------------------------

    def configuration(self) -> Configuration:
        files = (p for p in sorted(self.paths) if p.startswith(_CONFIGURATION) and self.exists(p))
        try:
            return _configure(tuple((path, self.text(path)) for path in files))
        except SetupError as error:
            raise ValidationError(f"The schema would become invalid: {error}") from error

    def edit_configuration(self, path: str, edits: Edits) -> None:
        if not edits:
            return
        try:
            self.put(path, edit_text(path, self.text(path), None, edits))
        except SyntaxProblem as error:
            self._refuse_syntax(path, error)
        except ConflictError as error:
            self.refuse(path, error.message.removeprefix(f"{path} "))

    def _refuse_syntax(self, path: str, error: SyntaxProblem) -> None:
        self.refusals.append(Finding(path, (), error.message, error.fix, error.line, is_syntax=True))

    # --- documents -----------------------------------------------------------------------------

    def document_files(self, layout: Layout, uids: Iterable[str]) -> Iterator[tuple[str, PathClaim]]:
        """Yield the path of each file of the content types `uids`, with the document version it contains."""
        wanted = frozenset(uids)
        for path in list(self.paths):
            claim = layout.claim(path) if path.endswith(ENDINGS) else None
            if (
                claim
                and claim.type.uid in wanted
                and self.context.store.owning_file(path, self.exists) == path
            ):
                self.permit(path)
                yield path, claim

    def edit_documents(
        self, before: Configuration, after: Configuration, uid: str, editor: Editor, keywords: Iterable[str]
    ) -> None:
        """Call `editor` for each document or component of the type `uid`, and apply the edits it returns.

        If `keywords` is not empty, files that contain none of the keywords are skipped.
        """
        keywords = tuple(keywords)
        layout = Layout(before.schema, before.settings)
        for path, claim in self.document_files(layout, types_containing(before.schema, uid)):
            text = self.text(path)
            body = claim.type.body if path.endswith(MARKDOWN) else None
            # A file with backslashes is not skipped, because keys can be escaped in JSON and YAML.
            if (
                keywords
                and body not in keywords
                and "\\" not in text
                and not any(word in text for word in keywords)
            ):
                continue
            try:
                self._edit_document(path, claim, after.schema, text, editor, before.schema, uid)
            except SyntaxProblem as error:
                self._refuse_syntax(path, error)
            except ConflictError as error:
                self.refuse(path, error.message.removeprefix(f"{path} "))

    def _edit_document(
        self, path: str, claim: PathClaim, after: Schema, text: str, editor: Editor, schema: Schema, uid: str
    ) -> None:
        tree, edits = parse(path, text, claim.type.body), Edits()
        for at, mapping in find_instances(schema, claim.type, tree, uid):
            edits.add(editor(AttributeMapping(path, claim, at, mapping)), at)
        if edits:
            self._refuse_to_publish(path, claim, after, tree, edits)
            new_body = _body_of(after, claim.type)
            new = edit_text(path, text, claim.type.body, edits, new_body, tree)
            if new != text:
                self.put(path, new)
                self.documents.add(path)

    def _refuse_to_publish(
        self, path: str, claim: PathClaim, after: Schema, tree: Mapping[str, Tree], edits: Edits
    ) -> None:
        key, new_type = claim.type.draft_key, after.types.get(claim.type.uid, claim.type)
        if self.may_publish or key is None or not is_marked_as_draft(claim.type, claim.name, tree):
            return
        if not is_marked_as_draft(new_type, claim.name, edits.applied_to(tree)):
            what = f'"{key.name}" would no longer mark the document as a draft (options.draftWhen)'
            self.refuse(path, what, "publish the document first, or edit the files by hand", (key.name,))


# The cache saves 30 ms for each step of a migration. A merge can apply many migrations.
@lru_cache(maxsize=8)
def _configure(files: tuple[tuple[str, str], ...]) -> Configuration:
    with TemporaryDirectory(prefix="bifolio-") as folder:
        root = Path(folder).resolve()
        for path, text in files:
            _write_file(root, path, text)
        return configure(root)


def _write_file(root: Path, path: str, text: str) -> None:
    """Write a configuration file.

    Raises SetupError if its path or text is invalid, and StorageError if writing fails.
    """
    relative = PurePath(path)
    if relative.anchor or ".." in relative.parts:
        raise SetupError(path, None, "is outside the site's folder", "use a name without slashes")
    target = root / relative
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        if error.errno not in _NAME_ERRORS:
            raise StorageError(f"The schema can't be checked: {error.strerror}") from error
        raise SetupError(path, None, f"can't be written: {error.strerror}", "use another name") from error
    except ValueError as error:  # a null byte in the path, or half of a surrogate pair in the text
        raise SetupError(path, None, f"can't be written: {error}", "use another name") from error


def _body_of(schema: Schema, type_: Type) -> str | None:
    return schema.types[type_.uid].body if type_.uid in schema.types else type_.body


def new_problems(before: Configuration, after: Configuration) -> list[Problem]:
    known, found = Counter(problem.message for problem in before.problems), []
    for problem in after.problems:
        if not known[problem.message]:
            found.append(problem)
        known[problem.message] -= 1
    return found
