"""Automatic fixes. `bifolio check --fix` applies only those that are certain to be correct."""

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.config.model import FILE
from server.config.reader import unknown_keys
from server.documents.blocks import unreadable_members
from server.documents.document import Document
from server.documents.path_rules import ENDINGS
from server.documents.readers import InvalidValue, read_target
from server.errors import ConflictError, SetupError
from server.formats.config_file import ConfigFile, read_config_file
from server.formats.text_positions import DuplicateKey, KeyPath, Position
from server.formats.tree import SyntaxProblem, Tree, is_null
from server.index.dangling import MEDIA, Key, exists
from server.paths import CONTENT, UPLOADS, state_folder
from server.problems import Problem
from server.schema.load import schema_paths
from server.schema.model import Attribute, Type
from server.schema.spelling import unambiguous_suggestion, unknown_schema_keys, unknown_words
from server.site.check.audit import Audit
from server.site.check.unclaimed import missing_document_ids
from server.storage.changeset import Changeset
from server.storage.document_text import drop_repeated_keys
from server.storage.git.log import CERTAIN_RENAME_PERCENT
from server.storage.intent import Write
from server.storage.journal import Journal
from server.storage.read import BOM, parse
from server.write.context import Context

# --- key fixes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyFix:
    """Correction of a mistyped key or value in site.yaml or in a schema."""

    path: str
    key_path: KeyPath
    old: str
    new: str
    position: Position

    def is_of(self, problem: Problem) -> bool:
        line, column, value = self.position
        return (problem.path, problem.line) == (self.path, line) and problem.column in (column, value)


def find_key_fixes(root: Path, problems: Iterable[Problem]) -> tuple[KeyFix, ...]:
    config_problems = [problem for problem in problems if problem.rule in ("settings", "schema")]
    paths = {problem.path for problem in config_problems} & {FILE, *schema_paths(root)}
    found = (fix for path in sorted(paths) for fix in _file_fixes(root, path))
    return tuple(fix for fix in found if any(map(fix.is_of, config_problems)))


def _file_fixes(root: Path, path: str) -> Iterator[KeyFix]:
    try:
        file = read_config_file(root, path)
    except SetupError:
        return
    for at, known in unknown_keys(file) if path == FILE else unknown_schema_keys(file.data):
        name, parent = str(at[-1]), file.get(*map(str, at[:-1]))
        free = [key for key in known if isinstance(parent, dict) and key not in parent]
        yield from _fix(file, at, name, unambiguous_suggestion(name, free))
    for at, known in unknown_words(file.data) if path != FILE else ():
        word = str(file.get(*map(str, at)))
        yield from _fix(file, at, word, unambiguous_suggestion(word, known))


def _fix(file: ConfigFile, key_path: KeyPath, old: str, new: str | None) -> Iterator[KeyFix]:
    position = file.positions.get(key_path)
    if new and position:
        yield KeyFix(file.path, key_path, old, new, position)


def key_fix_writes(root: Path, fixes: Iterable[KeyFix]) -> list[Write]:
    changeset = Changeset(root)
    _put_key_fixes(fixes, changeset)
    return changeset.writes()


def apply_key_fixes(fixes: Iterable[KeyFix], context: Context) -> None:
    _put_key_fixes(fixes, context.changeset)


def repair_configuration(root: Path, fixes: Iterable[KeyFix]) -> None:
    journal = Journal(root, state_folder(root))
    with journal.writing():
        journal.commit(key_fix_writes(root, fixes))


def _put_key_fixes(fixes: Iterable[KeyFix], changeset: Changeset) -> None:
    by_path: Mapping[str, list[KeyFix]] = defaultdict(list)
    for fix in fixes:
        by_path[fix.path].append(fix)
    for path, of_file in by_path.items():
        text = changeset.text(path)
        for fix in sorted(of_file, key=lambda fix: fix.position, reverse=True):
            text = _replace_word(text, fix)
        changeset.put(path, text)


def _replace_word(text: str, fix: KeyFix) -> str:
    # Check that the word is still at this position.
    line, column, value = fix.position
    is_key = fix.key_path[-1] == fix.old
    start = sum(len(before) + 1 for before in text.split("\n")[: line - 1])
    start += (column if is_key else value) - 1 + (line == 1 and text.startswith(BOM))
    start += text[start : start + 1] in ('"', "'")
    if not text.startswith(fix.old, start) or not (is_key or value):
        return text
    return text[:start] + fix.new + text[start + len(fix.old) :]


# --- fixes ----------------------------------------------------------------------------------------

CHANGED_MESSAGE = "the file has changed in the meantime"
REPEATED = "repeated-key"
FIXABLE_RULES = frozenset({"dangling", "missing-id", REPEATED, "value"})


@dataclass(frozen=True, slots=True)
class Fix:
    """Replacement of the value `old` with `new`, where None stands for null.

    If `rule` is "repeated-key", a duplicate key is removed instead. `message` replaces the problem's message
    unless it is "". `is_certain` is False if the fix is only a suggestion.
    """

    document: Document
    key_path: KeyPath
    old: str
    new: str | None  # the new value, or None for null
    rule: str  # rule of the problem that is fixed
    message: str = ""
    is_certain: bool = True
    line: int | None = None
    column: int | None = None

    @property
    def path(self) -> str:
        return self.document.path

    @property
    def spelled(self) -> str:
        return "null" if self.new is None else self.new


def find_fixes(audit: Audit, problems: Iterable[Problem]) -> list[Fix]:
    repeated = {problem.path for problem in problems if problem.rule == REPEATED}
    fixes = [*possible_fixes(audit), *_fix_repeated(audit, repeated)]
    return [fix for fix in fixes if fix.is_certain]


def possible_fixes(audit: Audit, paths: Collection[str] | None = None) -> list[Fix]:
    """Return the fixes and suggestions for the files at `paths`.

    If `paths` is None, all files are examined, but duplicate keys are ignored.
    """
    fixes = [
        Fix(audit.documents[path], ("documentId",), "", written, "missing-id")
        for path, (written, _) in missing_document_ids(audit).items()
        if paths is None or path in paths
    ]
    schema = audit.snapshot.schema
    fixable = {uid for uid, named in schema.reference_attributes.items() if named} | schema.types_with_blocks
    related = [document for document in audit.documents.values() if document.type.uid in fixable]
    for document in (*related, *audit.invalid_documents):
        path = document.path
        if not document.type.files and (paths is None or path in paths):
            fixes.extend(_fix_spelling(audit, document, document.type, _tree(audit, path), ()))
    fixes += _fix_repeated(audit, paths or ())
    return sorted(fixes, key=lambda fix: (fix.path, str(fix.key_path)))


def _fix_repeated(audit: Audit, paths: Collection[str]) -> Iterator[Fix]:
    # The last occurrence stays, because Bifolio and site generators use only that one.
    broken = {document.path: document for document in audit.invalid_documents}
    for path in sorted(paths):
        document = audit.documents.get(path) or broken.get(path)
        if document is None:
            continue
        repeats: list[DuplicateKey] = []
        try:
            parse(path, audit.text(path), None, None, repeats)
        except (OSError, SyntaxProblem):
            continue
        for key in repeats:
            yield Fix(document, key.path, key.text, None, REPEATED, line=key.line, column=key.column)


def _tree(audit: Audit, path: str) -> dict[str, Tree]:
    try:
        return parse(path, audit.text(path), None)
    except (OSError, SyntaxProblem):
        return {}


def _fix_spelling(audit: Audit, document: Document, type_: Type, tree: Tree, path: KeyPath) -> Iterator[Fix]:
    types = audit.snapshot.schema.types
    for name, attribute in type_.attributes.items() if isinstance(tree, dict) else ():
        value, at = tree.get(name), (*path, name)
        if attribute.has_targets and not attribute.derived and not attribute.morph:
            entries = enumerate(value) if isinstance(value, list) else [(None, value)]
            for i, entry in entries:
                meant = _intended_target(audit, document, attribute, entry)
                if meant is not None:
                    inner = at if i is None else (*at, i)
                    yield Fix(
                        document, inner, str(entry), meant.name, "dangling", meant.message, meant.is_certain
                    )
        elif attribute.type == "enumeration" and isinstance(value, str) and not is_null(value):
            new = unambiguous_suggestion(value, attribute.enum) if value not in attribute.enum else None
            if new is not None:
                yield Fix(document, at, str(value), new, "value")
        elif attribute.type == "blocks":
            for inner in unreadable_members(value):
                yield Fix(document, (*at, *inner), "null", None, "value")
        elif attribute.holds_components:
            items = enumerate(value) if isinstance(value, list) else [(None, value)]
            for i, item in items:
                uid = attribute.component or (item.get("__component") if isinstance(item, dict) else None)
                if uid in types:
                    inner = at if i is None else (*at, i)
                    yield from _fix_spelling(audit, document, types[str(uid)], item, inner)


@dataclass(frozen=True, slots=True)
class _Target:
    name: str
    message: str = ""
    is_certain: bool = True


def _intended_target(audit: Audit, document: Document, attribute: Attribute, entry: Tree) -> _Target | None:
    if not isinstance(entry, str) or is_null(entry):
        return None
    try:
        read = read_target(entry, attribute)
    except InvalidValue:
        return None
    if attribute.type == "media":
        new = read if read in audit.snapshot.media else _media(audit, document, str(entry))
        meant = _Target(new) if new else _renamed_target(audit, attribute.name, (MEDIA, read))
        meant = meant or _suggested_target(audit, (MEDIA, read))
    else:
        target = audit.snapshot.schema.types.get(attribute.target or "")
        if target is None or target.files or target.uid not in audit.snapshot.tables:
            return None
        new = (
            read
            if _is_known(audit, target, read)
            else _document_id_of_path(audit, document, target, str(entry))
        )
        meant = _Target(new) if new else _target_of_unknown_id(audit, attribute.name, target, str(read))
    return meant if meant and meant.name != entry else None


def _spellings(document: Document, text: str) -> tuple[str, str]:
    beside = posixpath.join(posixpath.dirname(document.path), text)
    return posixpath.normpath(text).strip("/"), posixpath.normpath(beside).strip("/")


def _media(audit: Audit, document: Document, text: str) -> str | None:
    candidates = {
        path.removeprefix(f"{UPLOADS}/").removeprefix("uploads/")
        for path in _spellings(document, text.strip())
    }
    known = [path for path in candidates if path in audit.snapshot.media]
    return known[0] if len(known) == 1 else None


def _is_known(audit: Audit, type_: Type, document_id: str) -> bool:
    versions = audit.snapshot.tables[type_.uid].versions
    return any(
        (document_id, locale, status) in versions
        for locale in audit.settings.locales.available
        for status in ("published", "draft")
    )


def _document_id_of_path(audit: Audit, document: Document, type_: Type, text: str) -> str | None:
    found = set()
    for path in _spellings(document, text.strip()):
        name = path.removeprefix(f"{CONTENT}/").removeprefix(f"{type_.plural}/")
        stem = f"{CONTENT}/{type_.plural}/{name}"
        for candidate in (stem, *(f"{stem}{ending}" for ending in ENDINGS)):
            claim = audit.claims.get(candidate)
            if claim and claim.type is type_ and candidate in audit.documents:
                found.add(audit.documents[candidate].document_id)
    return found.pop() if len(found) == 1 else None


def _target_of_unknown_id(audit: Audit, name: str, type_: Type, text: str) -> _Target | None:
    if (type_.uid, text) in audit.claimed_keys:
        return None  # The id is correct, but the document's file can't be read.
    return _renamed_target(audit, name, (type_.uid, text)) or _suggested_target(audit, (type_.uid, text))


def _renamed_target(audit: Audit, name: str, key: Key) -> _Target | None:
    rename = audit.renames.get(key)
    if rename is None or not exists(audit.snapshot, (key[0], rename.name)):
        return None
    source = f"commit {rename.commit[:10]}" if rename.commit else "an uncommitted change"
    message = f'{name} refers to "{key[1]}", which {source} renamed to "{rename.name}"'
    return _Target(rename.name, message, rename.similarity_percent >= CERTAIN_RENAME_PERCENT)


def _suggested_target(audit: Audit, key: Key) -> _Target | None:
    new = audit.id_correctors[key[0]].correct(key[1])
    return _Target(new) if new else None


@dataclass(frozen=True, slots=True)
class FixResult:
    """The fixes that were applied. `rejected` maps each file that could not be fixed to the reason."""

    fixes: tuple[Fix | KeyFix, ...]
    rejected: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FixRequest:
    """A request to apply `fixes`, which were found in `audit`."""

    audit: Audit
    fixes: tuple[Fix, ...]


def apply_fixes(repair: FixRequest, context: Context) -> FixResult:
    """Apply the requested fixes. This is a `prepare` function for `Site.write`."""
    by_path: dict[str, list[Fix]] = defaultdict(list)
    for fix in repair.fixes:
        by_path[fix.path].append(fix)
    applied: list[Fix] = []
    refused: dict[str, str] = {}
    for path, of_file in by_path.items():
        tree = _tree(repair.audit, path)
        try:
            repeated = {fix.key_path for fix in of_file if fix.rule == REPEATED}
            if repeated:
                text = context.changeset.text(path)
                context.changeset.put(path, drop_repeated_keys(path, text, repeated))
            changes: dict[str, Tree] = {}
            for fix in of_file:
                if fix.rule != REPEATED:
                    _refuse_changed(tree, fix)
                    key = str(fix.key_path[0])
                    changes[key] = _with(changes.get(key, tree.get(key)), fix.key_path[1:], fix.new)
            if changes:
                context.changeset.put(path, context.text_with_changes(of_file[0].document, changes))
            applied.extend(of_file)
        except (ConflictError, LookupError, TypeError) as error:
            refused[path] = getattr(error, "message", "") or CHANGED_MESSAGE
    return FixResult(tuple(applied), refused)


def _refuse_changed(tree: Tree, fix: Fix) -> None:
    for key in fix.key_path[:-1]:
        tree = tree[key]
    has_key = fix.key_path[-1] in tree if isinstance(tree, dict) else True
    if str(tree[fix.key_path[-1]] if has_key else "") != fix.old:
        raise LookupError


def _with(tree: Tree, key_path: KeyPath, value: str | None) -> Any:
    if not key_path:
        return value
    copy: Any = list(tree) if isinstance(tree, list) else dict(tree)
    copy[key_path[0]] = _with(tree[key_path[0]], key_path[1:], value)
    return copy
