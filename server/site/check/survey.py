"""Checks of an entire site."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from server.config.reader import survey_settings
from server.documents.document import PUBLISHED, Document
from server.documents.values import is_empty, same_values
from server.errors import SetupError, collect_setup_errors
from server.formats.text_positions import KeyPath, Position, line_and_column
from server.index.dangling import Key, find_dangling, no_document
from server.index.snapshot import Snapshot
from server.index.uniqueness import find_duplicates
from server.paths import STATE_FOLDER, TYPES
from server.problems import Problem, in_order
from server.schema.load import read_all_content_types
from server.schema.model import BUILT_IN, Schema, Type
from server.schema.spelling import find_mistyped_keys
from server.site.check.audit import Audit
from server.site.check.document_rules import find_in_documents
from server.site.check.fixes import FIXABLE_RULES, REPEATED, Fix, KeyFix, find_key_fixes, possible_fixes
from server.site.check.levels import apply_severities
from server.site.check.media_use import find_unused_media
from server.site.check.migrations import find_unmigrated_documents
from server.site.check.stale_translations import find_stale_translations
from server.site.check.unclaimed import (
    find_missing_ids,
    find_orphaned_translations,
    find_stale_drafts,
    find_unclaimed,
    find_unserved_translations,
    find_untranslated,
)
from server.site.configure import check_configuration_links, check_populates, check_state_folder
from server.site.site import Site
from server.storage.git.commit_queue import CommitQueue
from server.storage.journal import Journal
from server.write.context import values_of

# --- duplicates -----------------------------------------------------------------------------------


def duplicate_values(audit: Audit) -> Iterator[Problem]:
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
        what = f'{name} must be unique, but {min(owner)} has the same value (found "{shown}")'
        position = _position_of_value(audit, path, name, value)
        line, column = line_and_column(position)
        fix, at = "use a different value", tuple(name.split("."))
        yield Problem(path, line, what, fix, "warning", column, "duplicate-value", at)


def _position_of_value(audit: Audit, path: str, name: str, value: Any) -> Position | None:
    tree, positions = audit.parse_file(path)
    named = [at for at in positions if ".".join(k for k in at if isinstance(k, str)) == name]
    exact = [at for at in named if str(_value(tree, at)) == str(value)]
    return next((positions[at] for at in (*exact, *named)), None)


def _value(tree: Any, key_path: KeyPath) -> Any:
    for key in key_path:
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree


# --- shared values --------------------------------------------------------------------------------


def find_unequal_locales(audit: Audit, keys: Collection[Key] | None = None) -> Iterator[Problem]:
    """Yield a problem for each attribute that is not localized but differs between locales.

    If `keys` is given, only the documents with these keys are checked.
    """
    order = {locale: i for i, locale in enumerate(audit.settings.locales.available)}
    for type_ in audit.types:
        shared = [a.name for a in type_.attributes.values() if not a.localized and not a.derived]
        if not type_.localized or not shared:
            continue
        for first, *others in _translated_versions(audit, type_, order):
            if keys is not None and (type_.uid, first.document_id) not in keys:
                continue
            for other in others:
                for name in shared:
                    if not same_values(values_of(first)[name], values_of(other)[name]):
                        yield _problem(audit, name, first, other)


def _translated_versions(audit: Audit, type_: Type, locale_order: dict[str, int]) -> Iterator[list[Document]]:
    found: dict[str, list[Document]] = defaultdict(list)
    for (document_id, locale, status), document in audit.snapshot.tables[type_.uid].versions.items():
        if locale in locale_order and status == PUBLISHED:
            found[document_id].append(document)
    for documents in found.values():
        if len(documents) > 1:
            yield sorted(documents, key=lambda document: locale_order[document.locale])


def _problem(audit: Audit, name: str, first: Document, other: Document) -> Problem:
    missing = is_empty(values_of(other)[name])
    line, column = (None, None) if missing else line_and_column(audit.position(other.path, (name,)))
    message = (
        f"{name} must be the same in all locales, but is missing here and present in {first.path}"
        if missing
        else f"{name} must be the same in all locales, but differs from the value in {first.path}"
    )
    fix = (
        f"write the same value in all locales, or set pluginOptions.i18n.localized to true for {name} "
        f"in {other.type.path}"
    )
    return Problem(other.path, line, message, fix, "warning", column, "shared", (name,))


# --- survey ---------------------------------------------------------------------------------------

# Checks that always run. Each function yields the problems that it finds.
AUDITS: tuple[Callable[[Audit], Iterator[Problem]], ...] = (
    find_unclaimed,
    duplicate_values,
    find_unserved_translations,
    find_missing_ids,
    find_orphaned_translations,
    find_stale_drafts,
    find_unequal_locales,
    find_in_documents,
    find_unmigrated_documents,
)
# Rules that are off by default.
OPTIONAL_AUDITS: Mapping[str, Callable[[Audit], Iterator[Problem]]] = {
    "unused-media": find_unused_media,
    "stale-translation": find_stale_translations,
}


Place = tuple[str, int | None, int | None, str]  # a problem's path, line, column and rule


@dataclass(frozen=True)
class Survey:
    """The result of a check: the problems, and the number of files that were checked.

    `key_fixes` correct mistyped words in configuration files. `fixes` maps problems to fixes that are
    certain, and `suggestions` maps them to fixes that are not. `unchecked_relations` says why relations to
    users could not be checked, or is "" if they were checked. `site` and `audit` are None if the
    configuration is invalid.
    """

    problems: tuple[Problem, ...]
    file_count: int = 0
    fixable_count: int = 0
    applied_fixes: tuple[Fix | KeyFix, ...] = ()
    key_fixes: tuple[KeyFix, ...] = ()
    fixes: Mapping[Problem, Fix] = field(default_factory=dict)
    suggestions: Mapping[Problem, Fix] = field(default_factory=dict)
    site: Site | None = field(default=None, compare=False)
    audit: Audit | None = field(default=None, compare=False)
    unchecked_relations: str = ""

    @property
    def errors(self) -> int:
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def warnings(self) -> int:
        return len(self.problems) - self.errors


def survey(
    root: Path,
    open_site: Callable[[], Site],
    *,
    translations: bool = False,
    check_site: Callable[..., Survey] | None = None,
) -> Survey:
    """Check a site, and return the result.

    If the configuration is invalid, documents are not checked, and `open_site` and `check_site` are not
    called.
    """
    interrupted = _find_interrupted(root)  # Called first, because it may finish a write to the configuration.
    broken = broken_configuration(root)
    if broken:
        found = Survey(in_order((*broken, *interrupted)), len({problem.path for problem in broken}))
        return with_key_fixes(root, found)
    found = (check_site or survey_site)(open_site(), translations=translations)
    return with_key_fixes(root, replace(found, problems=in_order((*found.problems, *interrupted))))


def with_key_fixes(root: Path, survey: Survey) -> Survey:
    """Add fixes for mistyped words in configuration files to the result of a check."""
    fixes = find_key_fixes(root, survey.problems)
    problems = (
        replace(problem, fix=next((_change_of(f) for f in fixes if f.is_of(problem)), problem.fix))
        for problem in survey.problems
    )
    return replace(
        survey, problems=tuple(problems), fixable_count=survey.fixable_count + len(fixes), key_fixes=fixes
    )


def _change_of(fix: KeyFix) -> str:
    return f'--fix changes it to "{fix.new}"'


def survey_site(site: Site, *, translations: bool = False) -> Survey:
    audit = Audit(site.root, site.state.settings, site.state.snapshot)
    joined, unseen = with_users(audit)
    found = survey_audit(audit, site.problems, joined, translations=translations)
    return replace(found, site=site, unchecked_relations=unseen)


def survey_audit(
    audit: Audit, problems: Iterable[Problem], snapshot: Snapshot, *, translations: bool = False
) -> Survey:
    """Check all files of an audit.

    The given `problems` are added to the result. If `translations` is set, missing translations are reported,
    too. To check relations to users, `snapshot` must include users.
    """
    found = {_with_position(audit, problem): None for problem in problems}
    optional = (f for rule, f in OPTIONAL_AUDITS.items() if audit.settings.severity_of(rule) != "off")
    for find in (*AUDITS, *optional, *((find_untranslated,) if translations else ())):
        audit.checkpoint()
        found.update(dict.fromkeys(find(audit)))
    for documents in (list(audit.invalid_documents), None if snapshot.users is not None else []):
        found.update(dict.fromkeys(find_dangling(snapshot, audit.parse_file, documents)))
    return report_problems(audit, found)


def report_problems(audit: Audit, problems: Collection[Problem]) -> Survey:
    """Return a survey of the problems that are not ignored, together with their fixes."""
    lost = tuple(no_document(document.type.uid, document.document_id) for document in audit.invalid_documents)
    levelled = apply_severities(audit, problems)
    shown = (problem for problem in levelled if not problem.message.endswith(lost))
    paths = {problem.path for problem in problems if problem.rule in FIXABLE_RULES}
    possible = fixes_by_place(audit, paths)
    fixable = sum(fix.is_certain for fix in possible.values())
    reported: list[Problem] = []
    fixes: dict[Problem, Fix] = {}
    suggestions: dict[Problem, Fix] = {}
    for problem in shown:
        fix = possible.get(place_of(problem))
        reported.append(_with_fix(problem, fix))
        if fix is not None:
            (fixes if fix.is_certain else suggestions)[reported[-1]] = fix
    files = len(audit.files)
    return Survey(in_order(reported), files, fixable, fixes=fixes, suggestions=suggestions, audit=audit)


def with_users(audit: Audit) -> tuple[Snapshot, str]:
    """Return the snapshot, with users added if documents refer to them.

    The second value says why relations to users can't be checked, or is "" if they can be checked.
    """
    if not audit.snapshot.schema.has_user_relations:
        return audit.snapshot, ""
    join = import_module("server.site.check.users").with_users
    found = join(audit.root, audit.settings, audit.snapshot)
    return cast(tuple[Snapshot, str], found)


def _with_fix(problem: Problem, fix: Fix | None) -> Problem:
    if fix is None:
        return problem
    if fix.rule == REPEATED:
        return replace(problem, fix="--fix removes this occurrence")
    new = "null" if fix.new is None else f'"{fix.new}"'
    does = f"changes it to {new}" if fix.old else f"adds {'.'.join(map(str, fix.key_path))}: {new}"
    hint = f"--fix {does}" if fix.is_certain else f"change it to {new} if that is what you mean"
    return replace(problem, message=fix.message or problem.message, fix=hint)


def place_of(problem: Problem) -> Place:
    return problem.path, problem.line, problem.column, problem.rule


def fixes_by_place(audit: Audit, paths: Collection[str]) -> dict[Place, Fix]:
    fixes = {}
    for fix in possible_fixes(audit, paths):
        position = None if fix.rule == "missing-id" else audit.position(fix.path, fix.key_path)
        place = (fix.line, fix.column) if fix.rule == REPEATED else line_and_column(position)
        fixes[fix.path, *place, fix.rule] = fix
    return fixes


def broken_configuration(root: Path) -> list[Problem]:
    """Return the problems that make site.yaml or the schemas unusable."""
    links = list(check_configuration_links(root))
    schema, schema_errors = read_all_content_types(root) if not links else (Schema(BUILT_IN), links)
    with collect_setup_errors(schema_errors):
        check_state_folder(root)
    problems = [_problem_of(error, "schema") for error in schema_errors]
    settings, settings_errors = survey_settings(root)
    if not schema_errors:
        settings_errors += check_populates(settings, schema)
    problems += [_problem_of(error, "settings") for error in settings_errors]
    # Mistyped keys may be the cause of the problems. Otherwise, they are reported after loading.
    if problems:
        problems += find_mistyped_keys(root, schema.types.values())
    if not problems and not schema.content_types:
        fix = f"add {TYPES}/NAME.json, or run `bifolio init`"
        problems.append(Problem(TYPES, None, "the site has no content types", fix, rule="schema"))
    return problems


def _find_interrupted(root: Path) -> list[Problem]:
    try:
        check_state_folder(root)
    except SetupError:
        return []  # The folder can't be trusted, so the writes in its journal must not be finished.
    journal, queue = Journal(root, root / STATE_FOLDER), CommitQueue(root / STATE_FOLDER)
    found: list[Problem] = []
    if not journal.is_empty or queue.has_staged_writes:
        with journal.writing():
            dropped = [_DROPPED_PROBLEM] if journal.recovery.will_discard_writes() else []
            found = [*map(_finished_write, journal.recovery.unfinished_paths()), *dropped]
            journal.recover()
            queue.recover(root)
    return [*found, *map(_unsaved_write, journal.recovery.unsaved_paths())]


def _finished_write(path: str) -> Problem:
    fix = "review the change with `git diff`"
    what = "a write to this file was interrupted and has now been completed"
    return Problem(path, None, what, fix, "warning", rule="interrupted")


_DROPPED_PROBLEM = Problem(
    STATE_FOLDER,
    None,
    "a write was interrupted before it changed a file, and has been discarded",
    "send the write again if its change is missing",
    "warning",
    rule="interrupted",
)


def _unsaved_write(path: str) -> Problem:
    fix = "copy what you need from this file, then delete it"
    what = "contains a write that was not applied, because the original file was changed at the same time"
    return Problem(path, None, what, fix, "warning", rule="interrupted")


def _problem_of(error: SetupError, rule: str) -> Problem:
    return Problem(error.path, error.line, error.message, error.fix, "error", error.column, rule)


def _with_position(audit: Audit, problem: Problem) -> Problem:
    if problem.rule != "duplicate-id":
        return problem
    position = audit.position(problem.path, ("documentId",))
    if position is None:
        return problem
    return replace(problem, line=position.line, column=position.value_column or position.column)
