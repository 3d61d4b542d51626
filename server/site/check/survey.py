"""Checks a whole site: its configuration, its files, and what only shows in all of them together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from server.config.reader import survey_settings
from server.documents.document import PUBLISHED, Document
from server.documents.values import is_empty, same_values
from server.errors import SetupError, noting
from server.formats.text_positions import KeyPath, Position, line_and_column, nearest
from server.index.dangling import dangling, no_document
from server.index.snapshot import Snapshot
from server.index.uniqueness import find_duplicates
from server.paths import STATE_FOLDER, TYPES
from server.problems import Problem, in_order
from server.schema.load import survey_content_types
from server.schema.model import BUILT_IN, Schema, Type
from server.schema.spelling import find_mistyped_keys
from server.site.check.audit import Audit
from server.site.check.fixes import FIXABLE_RULES, REPEATED, Fix, KeyFix, find_key_fixes, possible_fixes
from server.site.check.unclaimed import (
    file_names,
    find_unclaimed,
    find_untranslated,
    missing_ids,
    orphans,
    stale_drafts,
)
from server.site.configure import check_state_folder, configuration_links, wrong_populates
from server.site.site import Site
from server.storage.git.commit_queue import CommitQueue
from server.storage.journal import Journal
from server.storage.read import parsed
from server.write.context import values_of

# --- duplicates -----------------------------------------------------------------------------------


def duplicate_values(audit: Audit) -> Iterator[Problem]:
    """Values of unique attributes that more than one document of a locale has."""
    for uid, table in audit.snapshot.tables.items():
        for name, value, documents in find_duplicates(table):
            yield from _shared(audit, uid, name, value, documents)


def _shared(
    audit: Audit, uid: str, name: str, value: Any, documents: tuple[Document, ...]
) -> Iterator[Problem]:
    by_id: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        by_id[document.document_id].append(document.path)
    owner, *others = sorted(by_id.values(), key=min)
    shown = str(value) if len(str(value)) <= 40 else f"{str(value)[:39]}…"
    for path in sorted({path for paths in others for path in paths}):
        what = f'{name}: "{shown}" must be unique, and {min(owner)} has it'
        position = _position_of_value(audit, path, name, value)
        line, column = line_and_column(position)
        fix, at = "give it another value", tuple(name.split("."))
        yield Problem(path, line, what, fix, "warning", column, "duplicate-value", at)


def _position_of_value(audit: Audit, path: str, name: str, value: Any) -> Position | None:
    """The position of an attribute's value; `name` is the dotted path, without indexes of lists."""
    tree, positions = parsed(audit.root, path)
    named = [at for at in positions if ".".join(k for k in at if isinstance(k, str)) == name]
    exact = [at for at in named if str(_value(tree, at)) == str(value)]
    return next((positions[at] for at in (*exact, *named)), None)


def _value(tree: Any, at: KeyPath) -> Any:
    """The value at a path; None where there is none."""
    for key in at:
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree


# --- shared values --------------------------------------------------------------------------------


def unequal_locales(audit: Audit) -> Iterator[Problem]:
    """Files that say something else of a shared attribute than that of the first locale with the document."""
    order = {locale: i for i, locale in enumerate(audit.settings.locales.available)}
    for type_ in audit.types:
        shared = [a.name for a in type_.attributes.values() if not a.localized and not a.derived]
        if not type_.localized or not shared:
            continue
        for first, *others in _versions(audit, type_, order):
            for other in others:
                for name in shared:
                    if not same_values(values_of(first)[name], values_of(other)[name]):
                        yield _problem(audit, name, first, other)


def _versions(audit: Audit, type_: Type, order: dict[str, int]) -> Iterator[list[Document]]:
    """What is published of each document that has several locales, in the order of the site's.

    A draft may differ: what it changes of a shared attribute reaches the others when it is published.
    """
    found: dict[str, list[Document]] = defaultdict(list)
    for (document_id, locale, status), document in audit.snapshot.tables[type_.uid].versions.items():
        if locale in order and status == PUBLISHED:
            found[document_id].append(document)
    for documents in found.values():
        if len(documents) > 1:
            yield sorted(documents, key=lambda document: order[document.locale])


def _problem(audit: Audit, name: str, first: Document, other: Document) -> Problem:
    missing = is_empty(values_of(other)[name])
    line, column = (None, None) if missing else line_and_column(audit.position(other.path, (name,)))
    what = "no value here, but one" if missing else "another value here than"
    message = f"{name}: has {what} in {first.path}, and all locales share it"
    fix = f"write the same value, or set pluginOptions.i18n.localized of {name} in {other.type.path}"
    return Problem(other.path, line, message, fix, "warning", column, "shared", (name,))


# --- survey ---------------------------------------------------------------------------------------

# Each yields the problems of one kind that no single file shows.
AUDITS: tuple[Callable[[Audit], Iterator[Problem]], ...] = (
    find_unclaimed,
    duplicate_values,
    file_names,
    missing_ids,
    orphans,
    stale_drafts,
    unequal_locales,
)


@dataclass(frozen=True)
class Survey:
    """What a check found: the problems, the number of files, how many values can be fixed, those fixed.

    `key_fixes` are the fixes of the configuration, which `fixable` counts as well. `fixes` are those of
    documents that are safe, by problem.
    `unseen` says what could not be looked at, if there is something.
    `site` and `audit` are None if site.yaml or a schema is broken, so that no document could be read.
    """

    problems: tuple[Problem, ...]
    files: int = 0
    fixable: int = 0
    fixed: tuple[Fix | KeyFix, ...] = ()
    key_fixes: tuple[KeyFix, ...] = ()
    fixes: Mapping[Problem, Fix] = field(default_factory=dict)
    site: Site | None = field(default=None, compare=False)
    audit: Audit | None = field(default=None, compare=False)
    unseen: str = ""

    @property
    def errors(self) -> int:
        """How many problems are errors."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def warnings(self) -> int:
        """How many problems are warnings."""
        return len(self.problems) - self.errors


def survey(root: Path, open_site: Callable[[], Site], *, translations: bool = False) -> Survey:
    """Check the site at `root`, which `open_site` opens where its configuration can be read."""
    interrupted = _find_interrupted(root)  # before, since it may be a part of the configuration
    wrong = _configuration(root)
    if wrong:
        found = Survey(in_order((*wrong, *interrupted)), len({problem.path for problem in wrong}))
        return _with_key_fixes(root, found)
    site = open_site()
    found = survey_site(site, translations=translations)
    return _with_key_fixes(root, replace(found, problems=in_order((*found.problems, *interrupted))))


def _with_key_fixes(root: Path, found: Survey) -> Survey:
    """What was found, with what --fix would write into the configuration."""
    fixes = find_key_fixes(root, found.problems)
    told = (
        replace(problem, fix=next((f"--fix writes {f.new}" for f in fixes if f.is_of(problem)), problem.fix))
        for problem in found.problems
    )
    return replace(found, problems=tuple(told), fixable=found.fixable + len(fixes), key_fixes=fixes)


def survey_site(site: Site, *, translations: bool = False) -> Survey:
    """Check a site that has been loaded."""
    audit = Audit(site.root, site.state.settings, site.state.snapshot)
    joined, unseen = _join_users(site)
    found = look_at(audit, site.problems, joined, translations=translations)
    return replace(found, site=site, unseen=unseen)


def look_at(
    audit: Audit, problems: Iterable[Problem], joined: Snapshot, *, translations: bool = False
) -> Survey:
    """Check documents and files, whose own problems are known; `joined` is the snapshot with the users."""
    found = {_with_position(audit.root, problem): None for problem in problems}
    for find in (*AUDITS, *((find_untranslated,) if translations else ())):
        found.update(dict.fromkeys(find(audit)))
    for documents in (list(audit.broken), None if joined.users is not None else []):
        found.update(dict.fromkeys(dangling(joined, partial(parsed, audit.root), documents)))
    lost = tuple(no_document(document.type.uid, document.document_id) for document in audit.broken)
    shown = (p for p in found if not audit.settings.ignores(p) and not p.message.endswith(lost))
    possible = _fixes(audit, found)
    fixable = sum(fix.certain for fix in possible.values())
    told: list[Problem] = []
    fixes: dict[Problem, Fix] = {}
    for problem in shown:
        fix = possible.get((problem.path, problem.line, problem.column, problem.rule))
        told.append(_with_fix(problem, fix))
        if fix is not None and fix.certain:
            fixes[told[-1]] = fix
    files = len(audit.files)
    return Survey(in_order(told), files, fixable, fixes=fixes, audit=audit)


def _join_users(site: Site) -> tuple[Snapshot, str]:
    """See `server.site.check.users`, which is loaded where content can relate to users."""
    if not site.state.schema.knows_users:
        return site.state.snapshot, ""
    found = import_module("server.site.check.users").join_users(site)
    return cast(tuple[Snapshot, str], found)


def _with_fix(problem: Problem, fix: Fix | None) -> Problem:
    """A problem that says what --fix would write, or what somebody else may want to."""
    if fix is None:
        return problem
    if fix.rule == REPEATED:
        return replace(problem, fix="--fix removes this one")
    name = fix.at[0] if fix.new is not None else ".".join(map(str, fix.at))
    do = f"--fix writes {name}: {fix.spelled}" if fix.certain else f'write "{fix.new}", if it is the same'
    return replace(problem, message=fix.what or problem.message, fix=do)


def _fixes(audit: Audit, found: Iterable[Problem]) -> dict[tuple[str, int | None, int | None, str], Fix]:
    """What may have to be written, by the path, position and rule of a problem."""
    fixes = {}
    for fix in possible_fixes(audit, {problem.path for problem in found if problem.rule in FIXABLE_RULES}):
        position = None if fix.rule == "missing-id" else audit.position(fix.path, fix.at)
        place = (fix.line, fix.column) if fix.rule == REPEATED else line_and_column(position)
        fixes[fix.path, *place, fix.rule] = fix
    return fixes


def _configuration(root: Path) -> list[Problem]:
    """The problems of site.yaml and content-types/."""
    links = list(configuration_links(root))
    schema, wrong = survey_content_types(root) if not links else (Schema(BUILT_IN), links)
    with noting(wrong):
        check_state_folder(root)
    problems = [_problem_of(error, "schema") for error in wrong]
    settings, unread = survey_settings(root)
    if not wrong:
        unread += wrong_populates(settings, schema)
    problems += [_problem_of(error, "settings") for error in unread]
    if problems:  # They may be why; of a site that can be loaded, its own problems have them.
        problems += find_mistyped_keys(root, schema.types.values())
    if not problems and not schema.content_types:
        fix = f"add {TYPES}/NAME.json, or let `bifolio init` do it"
        problems.append(Problem(TYPES, None, "the site has no content types", fix, rule="schema"))
    return problems


def _find_interrupted(root: Path) -> list[Problem]:
    """What is left of writes that were cut off, which are finished or dropped here as a server would."""
    try:
        check_state_folder(root)
    except SetupError:
        return []  # Nothing in a folder that others may have filled is carried out.
    journal, queue = Journal(root, root / STATE_FOLDER), CommitQueue(root / STATE_FOLDER)
    found: list[Problem] = []
    if not journal.empty or queue.is_unsettled:
        with journal.writing():
            dropped = [_DROPPED_PROBLEM] if journal.left.dropped() else []
            found = [*map(_finished_write, journal.left.interrupted()), *dropped]
            journal.recover()
            queue.settle(root)
    return [*found, *map(_unsaved_write, journal.left.unsaved())]


def _finished_write(path: str) -> Problem:
    """A write that a killed process left, which was carried out when the site was read."""
    fix = "look at `git diff`: all files of that change are written now"
    what = "a write of it was cut off, and has been finished"
    return Problem(path, None, what, fix, "warning", rule="interrupted")


_DROPPED_PROBLEM = Problem(
    STATE_FOLDER,
    None,
    "a write was cut off before it changed a file, and has been dropped",
    "send it again, if it is missing",
    "warning",
    rule="interrupted",
)


def _unsaved_write(path: str) -> Problem:
    """What a write that was cut off should have written over a file that somebody had edited meanwhile."""
    fix = "take over what you want of it, then delete it"
    what = "is from a write that was cut off, whose file was edited meanwhile"
    return Problem(path, None, what, fix, "warning", rule="interrupted")


def _problem_of(error: SetupError, rule: str) -> Problem:
    return Problem(error.path, error.line, error.message, error.fix, "error", error.column, rule)


def _with_position(root: Path, problem: Problem) -> Problem:
    """A problem; one with a document's id gets the position of that id."""
    if problem.rule != "duplicate-id":
        return problem
    position = nearest(parsed(root, problem.path)[1], ("documentId",))
    if position is None:
        return problem
    return replace(problem, line=position.line, column=position.value or position.column)
