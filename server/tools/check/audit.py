"""What is wrong with a site that no single file shows: ids, values, locales, drafts, unclaimed files.

Each function takes the Audit and yields problems; the table AUDITS names those that every check runs.
"""

import os.path
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from server.config.model import FILE, Settings
from server.config.values import LOCALE
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.layout import CONTENT, ENDINGS, MARKDOWN, UPLOADS, Claim, Layout
from server.documents.locales import is_language
from server.formats.positions import KeyPath, Position, nearest
from server.index.snapshot import Snapshot
from server.problems import Problem
from server.schema.model import UPLOAD, Type
from server.spelling import suggestion
from server.storage.files import walk
from server.storage.media import DESCRIPTION
from server.storage.read import parsed

# Where a file says no timestamp, it is a commit's or a copy's; copies of a site are not made at one moment.
COPYING = timedelta(minutes=1)


@dataclass(frozen=True)
class Audit:
    """What the audits look at: the documents of a site and the files in its folders."""

    root: Path
    settings: Settings
    snapshot: Snapshot

    @cached_property
    def layout(self) -> Layout:
        """The rules that say which file is which document."""
        return Layout(self.snapshot.schema, self.settings)

    @cached_property
    def files(self) -> frozenset[str]:
        """All files in the folders that documents can be in."""
        return frozenset(walk(self.root, self.layout.roots).files)

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """What each file that a type claims says of its document."""
        found = ((path, self.layout.claim(path)) for path in self.files if not _is_upload(path))
        return {path: claim for path, claim in found if claim}

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        """The documents of the content types, by the file they are in."""
        found = chain.from_iterable(self.snapshot.claims.values())
        return {d.path: d for d in found if d.type.uid != UPLOAD}

    def position(self, path: str, at: KeyPath) -> Position | None:
        """Where a key of a document's file, or what it is in, stands."""
        return nearest(parsed(self.root, path)[1], at)


def unclaimed(audit: Audit) -> Iterator[Problem]:
    """Files in the content folders that no type takes as a document."""
    for path in sorted(audit.files - audit.claims.keys()):
        if _is_upload(path):
            described = path.removesuffix(DESCRIPTION)
            if path.endswith(DESCRIPTION) and os.path.splitext(described)[1] and described not in audit.files:
                yield _lost_description(audit, path, described)
        elif _should_be_claimed(audit, path):
            message, fix = _why_unclaimed(audit, path)
            yield Problem(path, None, message, fix, "warning", None, "unclaimed")


def _should_be_claimed(audit: Audit, path: str) -> bool:
    """Whether a file is where only documents should be; a generator's tree has other files as well."""
    patterns = [p for t in _types(audit) for p in t.files if "{name}" in p]
    trees = {p.partition("{")[0].rpartition("/")[0] for p in patterns}
    around = [tree for tree in trees if path.startswith(f"{tree}/") or not tree]
    if not around or (around == [""] and path.startswith(f"{CONTENT}/")):
        return path.startswith(f"{CONTENT}/")
    endings = {os.path.splitext(p)[1] for p in patterns}
    if around == [""]:  # the whole site is a tree: with its own files, and those that a repository has
        return "/" in path and not path.startswith("content-types/") and path.endswith(tuple(endings))
    return path.endswith((*MARKDOWN, *endings))


def _types(audit: Audit) -> tuple[Type, ...]:
    return audit.snapshot.schema.content_types


def _is_upload(path: str) -> bool:
    return path.startswith(f"{UPLOADS}/")


def _lost_description(audit: Audit, path: str, described: str) -> Problem:
    folder = os.path.dirname(path)
    beside = [f for f in audit.files if os.path.dirname(f) == folder and not f.endswith(DESCRIPTION)]
    fix = suggestion(described, beside) or "add the file, or remove its description"
    return Problem(path, None, f"describes {described}, which is not there", fix, "warning", None, "dangling")


def _why_unclaimed(audit: Audit, path: str) -> tuple[str, str]:
    """Why no type claims a file, as far as its path tells, and how to fix it."""
    if not path.endswith(ENDINGS):
        return "is no document", f"move it to {UPLOADS}, or remove it"
    name = path.removeprefix(f"{CONTENT}/")
    folder, inside, _ = name.partition("/")
    plurals = [t.plural for t in _types(audit) if t.kind == "collectionType" and not t.files]
    if path.startswith(f"{CONTENT}/") and inside:
        near = next((t.plural for t in _types(audit) if t.singular == folder), "")
        near = f'did you mean "{CONTENT}/{near}"?' if near else suggestion(folder, plurals)
        return f'no content type has the folder "{folder}"', near or "move it, or add a content type for it"
    singles = [t.singular for t in _types(audit) if t.kind == "singleType" and not t.files]
    if path.startswith(f"{CONTENT}/"):
        stem = folder.partition(".")[0]
        return f'no single type is named "{stem}"', suggestion(
            stem, singles
        ) or "move it into a type's folder"
    patterns = ", ".join(p for t in _types(audit) for p in t.files if path.startswith(p.partition("{")[0]))
    return "no content type claims it", f"options.files here: {patterns}" if patterns else "move it"


def duplicate_values(audit: Audit) -> Iterator[Problem]:
    """Values of unique attributes that more than one document has in a locale."""
    for uid, table in audit.snapshot.tables.items():
        for (name, value, _), documents in table.unique.items():
            if len(documents) > 1 and len({d.document_id for d in documents}) > 1:
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
        line, column = (position.line, position.value or position.column) if position else (None, None)
        yield Problem(path, line, what, "give it another value", "warning", column, "duplicate-value")


def _position_of_value(audit: Audit, path: str, name: str, value: Any) -> Position | None:
    """Where an attribute has a value; `name` is its path without positions in lists."""
    tree, lines = parsed(audit.root, path)
    places = [at for at in lines if ".".join(k for k in at if isinstance(k, str)) == name]
    exact = [at for at in places if str(_value(tree, at)) == str(value)]
    return next((lines[at] for at in (*exact, *places)), None)


def _value(tree: Any, at: KeyPath) -> Any:
    for key in at:
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree


def file_names(audit: Audit) -> Iterator[Problem]:
    """Files named like a draft or a locale of another document, of a type or site that has no such thing."""
    stems = {os.path.splitext(path)[0] for path in audit.claims}
    for path, claim in sorted(audit.claims.items()):
        stem, last = os.path.splitext(os.path.splitext(path)[0])
        code = last[1:]
        if code == "draft" and not claim.type.draft_publish:
            what, fix = "is named like a draft", f"set options.draftAndPublish in {claim.type.path}"
        elif stem not in stems or not (LOCALE.fullmatch(code) and is_language(code)) or claim.locale == code:
            continue
        elif not claim.type.localized:
            what, fix = f'is named like "{code}"', f"set pluginOptions.i18n.localized in {claim.type.path}"
        else:
            what, fix = f'is named like "{code}"', f"add {code} to locales.available in {FILE}"
        message = f'{what}, and is served as the document "{claim.document_id}"'
        yield Problem(path, None, message, f"{fix}, or rename it", "warning", None, "file-name")


def missing_ids(audit: Audit) -> Iterator[Problem]:
    """Locales and drafts that say no documentId where another file of the same name says one."""
    for path, (written, other) in written_ids(audit).items():
        what = f'says no documentId, and {other} has "{written}": they are two documents'
        yield Problem(path, None, what, f"write documentId: {written}", "warning", None, "missing-id")


def written_ids(audit: Audit) -> Mapping[str, tuple[str, str]]:
    """The documentId that a file should say, and the file of the same name that says it; by path."""
    named: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for path, document in audit.documents.items():
        claim = audit.claims.get(path)
        if claim and (document.type.localized or document.type.draft_publish):
            named[document.type.uid, claim.name].append(document)
    found = {}
    for documents in named.values():
        derived = audit.claims[documents[0].path].document_id
        written = {d.document_id: d.path for d in documents if d.document_id != derived}
        if len(written) == 1:
            found.update({d.path: min(written.items()) for d in documents if d.document_id == derived})
    return found


def orphans(audit: Audit) -> Iterator[Problem]:
    """Documents in another locale than the default one, in which there is none of that id."""
    default = audit.settings.default_locale
    fixed = written_ids(audit)
    for type_ in _types(audit):
        here = _ids(audit, type_, default)
        for path, document in sorted(_of_type(audit, type_).items()):
            if document.locale == default or document.document_id in here or path in fixed:
                continue
            if _counterpart(audit, path, default) is None:
                what = f'is "{document.document_id}" in {document.locale}, which there is not in {default}'
                fix = suggestion(document.document_id, here) or f"add {_sibling(audit, path, default)}"
                yield Problem(path, None, what, fix, "warning", None, "translation")


def untranslated(audit: Audit) -> Iterator[Problem]:
    """Documents of localised types that a locale of the site does not have (only when asked for)."""
    default = audit.settings.default_locale
    for type_ in _types(audit):
        for locale in audit.settings.locales if type_.localized else ():
            there = _ids(audit, type_, locale)
            for path, document in sorted(_of_type(audit, type_).items()):
                wanted = document.locale == default != locale and document.document_id not in there
                if wanted and document.status == PUBLISHED and _counterpart(audit, path, locale) is None:
                    fix = f"add {_sibling(audit, path, locale)}"
                    yield Problem(path, None, f"has no {locale} version", fix, "warning", None, "translation")


def _of_type(audit: Audit, type_: Type) -> Mapping[str, Document]:
    return {path: d for path, d in audit.documents.items() if d.type.uid == type_.uid}


def _ids(audit: Audit, type_: Type, locale: str) -> set[str]:
    return {i for i, found, _ in audit.snapshot.tables[type_.uid].versions if found == locale}


def _sibling(audit: Audit, path: str, locale: str) -> str:
    """Where the same document's file of another locale belongs."""
    claim = audit.claims[path]
    wanted = Claim(claim.type, claim.name, locale, False)
    return audit.layout.path_of(wanted, os.path.splitext(path)[1], audit.layout.pattern_of(path))


def _counterpart(audit: Audit, path: str, locale: str) -> str | None:
    """The file of the same name in another locale, which may be broken."""
    stem = os.path.splitext(_sibling(audit, path, locale))[0]
    names = (f"{stem}{draft}{ending}" for draft in ("", ".draft") for ending in ENDINGS)
    return next((name for name in names if name in audit.files), None)


def stale_drafts(audit: Audit) -> Iterator[Problem]:
    """Drafts that were updated before what is published was: publishing them would bring back old text."""
    for document in audit.documents.values():
        if document.status != DRAFT:
            continue
        key = (document.type.uid, document.document_id, document.locale, PUBLISHED)
        live = next(iter(audit.snapshot.claims.get(key, ())), None)
        if live and _timestamp(document) + COPYING < _timestamp(live):
            position = audit.position(document.path, ("updatedAt",))
            line, column = (position.line, position.value or position.column) if position else (None, None)
            drafted, published = (d.updated_at[:16].replace("T", " ") for d in (document, live))
            what = f"is a draft of {drafted}, older than {live.path} of {published}"
            fix = "bring it up to date, or remove it"
            yield Problem(document.path, line, what, fix, "warning", column, "stale-draft")


def _timestamp(document: Document) -> datetime:
    return datetime.fromisoformat(document.updated_at)


AUDITS: tuple[Callable[[Audit], Iterator[Problem]], ...] = (
    unclaimed,
    duplicate_values,
    file_names,
    missing_ids,
    orphans,
    stale_drafts,
)
