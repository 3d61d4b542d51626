"""Check of the files that a branch changed."""

import re
from collections.abc import Iterator
from posixpath import basename
from typing import Literal
from unicodedata import normalize
from urllib.parse import quote, unquote

from server.documents.addresses import origin_of, path_of
from server.documents.document import PUBLISHED, Document, column_of
from server.formats.tree import SyntaxProblem
from server.index.dangling import MEDIA, exists, find_dangling, pointing
from server.index.snapshot import Snapshot
from server.problems import Problem
from server.schema.model import Schema, Type
from server.site.check.alternative_texts import find_images_without_text
from server.site.check.audit import Audit, is_upload
from server.site.check.branch_changes import BranchChanges, files_that_contain
from server.site.check.document_rules import find_in_documents
from server.site.check.links import LinkTargets, broken_links, page_of
from server.site.check.page_addresses import addresses_of_page
from server.site.check.page_links import normalized_aliases
from server.site.check.survey import (
    AUDITS,
    OPTIONAL_AUDITS,
    Survey,
    duplicate_values,
    report_problems,
    survey_site,
    with_users,
)
from server.site.check.unclaimed import find_unclaimed, find_untranslated
from server.site.problems import find_duplicate_files
from server.site.site import Site
from server.storage.media import SIDECAR_SUFFIX, media_key
from server.storage.read import parse

# Unicode has two encodings for letters with accents.
_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
# These audits are not called for unchanged documents.
_DOCUMENT_AUDITS = (duplicate_values, find_in_documents)


def survey_changes(site: Site, changes: BranchChanges, *, translations: bool = False) -> Survey:
    """Check the files that a branch changed, and the files that these changes affect.

    If the configuration or very many files have changed, all files are checked.
    """
    if changes.affects_everything:
        return survey_site(site, translations=translations)
    audit = Audit(site.root, site.state.settings, site.state.snapshot)
    joined, unseen = with_users(audit)
    near, targets = _related_paths(audit, changes), LinkTargets(audit)
    found = dict.fromkeys(p for p in site.problems_in_files if p.path in changes.paths)
    found.update(dict.fromkeys(_find_between(audit, near, changes, translations=translations)))
    found.update(dict.fromkeys(_find_dangling(audit, joined, changes)))
    found.update(dict.fromkeys(find_in_documents(audit, changes.paths, targets)))
    found.update(dict.fromkeys(_find_in_unchanged(audit, joined, changes, targets)))
    survey = report_problems(audit, found)
    files = sum(path in audit.files for path in changes.paths)
    return Survey(
        survey.problems,
        files,
        survey.fixable_count,
        fixes=survey.fixes,
        site=site,
        audit=audit,
        unchecked_relations=unseen,
    )


def _related_paths(audit: Audit, changes: BranchChanges) -> frozenset[str]:
    claims = (audit.layout.claim(path) for path in changes.paths)
    keys = {(claim.type.uid, claim.name) for claim in claims if claim}
    stems = {_stem(path) for path in changes.paths}
    same = (
        path
        for path, claim in audit.claims.items()
        if _stem(path) in stems or (claim.type.uid, claim.name) in keys
    )
    return frozenset((*same, *changes.paths))


def _stem(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.partition('.')[0]}"


def _find_between(
    audit: Audit, near: frozenset[str], changes: BranchChanges, *, translations: bool
) -> Iterator[Problem]:
    media = any(map(is_upload, changes.paths))
    optional = [
        find
        for rule, find in OPTIONAL_AUDITS.items()
        if audit.settings.severity_of(rule) != "off" and (media or rule != "unused-media")
    ]
    more = (find_untranslated,) if translations else ()
    limited = audit.limited(near)
    for find in (one for one in AUDITS if one not in (*_DOCUMENT_AUDITS, find_unclaimed)):
        yield from (problem for problem in find(limited) if problem.path in near)
    for find in (find_unclaimed, *optional, *more):
        yield from (problem for problem in find(audit) if problem.path in near)
    if audit.snapshot.claims.duplicate_keys or media:
        yield from (problem for problem in find_duplicate_files(audit.snapshot) if problem.path in near)
    if _has_duplicates(audit, changes):
        for problem in duplicate_values(audit):
            if problem.path in changes.paths or any(path in problem.message for path in changes.paths):
                yield problem


def _has_duplicates(audit: Audit, changes: BranchChanges) -> bool:
    schema, tables = audit.snapshot.schema, audit.snapshot.tables
    changed = [document for path, document in audit.documents.items() if path in changes.paths]
    for uid in {document.type.uid for document in changed}:
        type_ = schema.types[uid]
        if any(_has_unique(schema, schema.types[c]) for c in _component_uids(type_) if c in schema.types):
            return True
        documents = [d for d in tables[uid].versions.values() if d.status == PUBLISHED]
        of_type = [document for document in changed if document.type.uid == uid]
        for attribute in type_.attributes.values():
            if attribute.unique or attribute.type == "uid":
                at = type_.position[attribute.name]
                values = {value for value in column_of(of_type, at) if value not in (None, "")}
                ids: dict[object, str] = {}
                for document, value in zip(documents, column_of(documents, at), strict=True):
                    if (
                        value in values
                        and ids.setdefault(value, document.document_id) != document.document_id
                    ):
                        return True
    return False


def _component_uids(type_: Type) -> Iterator[str]:
    for attribute in type_.attributes.values():
        yield from attribute.component_uids


def _has_unique(schema: Schema, type_: Type, seen: frozenset[str] = frozenset()) -> bool:
    if any(a.unique or a.type == "uid" for a in type_.attributes.values()):
        return True
    inner = (schema.types[uid] for uid in _component_uids(type_) if uid in schema.types and uid not in seen)
    return any(_has_unique(schema, one, seen | {type_.uid}) for one in inner)


def _find_dangling(audit: Audit, snapshot: Snapshot, changes: BranchChanges) -> Iterator[Problem]:
    broken = (document for document in audit.invalid_documents if document.path in changes.paths)
    changed: list[Document] = [d for path, d in audit.documents.items() if path in changes.paths]
    yield from find_dangling(snapshot, audit.parse_file, [*changed, *broken])


def _find_in_unchanged(
    audit: Audit, snapshot: Snapshot, changes: BranchChanges, targets: LinkTargets
) -> Iterator[Problem]:
    removed = {key for key in changes.old_keys(audit.layout) if not exists(snapshot, key)}
    gone = _removed_targets(audit, changes)
    # Each spelling of a relation contains the last part of the id.
    names = {basename(path) for path in gone} | {re.split("--|/", key)[-1] for _, key in removed}
    names |= {unquote(name) for path in gone for name in (basename(path), _last_in_address(audit, path))}
    words = {form for name in names for form in (name, quote(name), *(normalize(f, name) for f in _FORMS))}
    paths = files_that_contain(audit.root, sorted(words - {""})) - changes.paths
    documents = [audit.documents[path] for path in sorted(paths & audit.documents.keys())]
    documents += [document for document in audit.invalid_documents if document.path in paths]
    yield from find_dangling(snapshot, audit.parse_file, documents, removed)
    if audit.settings.severity_of("missing-alt") != "off":
        yield from _find_undescribed(audit, changes)
    if audit.settings.severity_of("broken-link") != "off":
        for path in sorted(paths):
            page = page_of(audit, path)
            if page is not None:
                yield from broken_links(page, targets, gone)


def _find_undescribed(audit: Audit, changes: BranchChanges) -> Iterator[Problem]:
    paths = (path.removesuffix(SIDECAR_SUFFIX) for path in changes.paths if is_upload(path))
    keys = {key for path in paths if (key := media_key(path))}
    for document in pointing(audit.snapshot, {(MEDIA, key) for key in keys}) if keys else ():
        page = page_of(audit, document.path)
        if page is not None:
            yield from find_images_without_text(page, document, audit.snapshot, keys)


def _last_in_address(audit: Audit, path: str) -> str:
    document = audit.documents.get(path)
    address = audit.addresses.address(document) if document else None
    return basename((address or "").rstrip("/"))


def _removed_addresses(audit: Audit, changes: BranchChanges) -> Iterator[str]:
    if not audit.addresses.pages:
        return
    for path, text in changes.old_texts.items():
        claim = audit.layout.claim(path)
        if claim is None or claim.type.singular not in audit.settings.urls:
            continue
        try:
            document = audit.read_document(claim, path, parse(path, text, None))
        except SyntaxProblem:
            continue
        for url in _urls_of(audit, document):
            if audit.addresses.document_at(path_of(url), origin_of(url)) is None:
                yield from addresses_of_page(path_of(url))
        yield from normalized_aliases(document, text, audit)


def _urls_of(audit: Audit, document: Document) -> Iterator[str]:
    locales = audit.settings.locales
    # A front end can show the default locale at the addresses of missing translations.
    shows_elsewhere = document.type.localized and document.locale == locales.default
    for locale in locales.available if shows_elsewhere else (document.locale,):
        url = audit.addresses.url_in_locale(locale, document)
        if url:
            yield url


def _removed_targets(audit: Audit, changes: BranchChanges) -> dict[str, frozenset[str] | None]:
    """Return the link targets that a branch removed, by path.

    A removed file or page maps to None. A file that still exists maps to the anchors that it no longer has.
    """
    gone: dict[str, frozenset[str] | None] = dict.fromkeys(
        (*changes.removed_paths, *_removed_addresses(audit, changes))
    )
    for path, anchors in changes.old_anchors().items():
        page = page_of(audit, path)
        if page is not None and path not in gone and (lost := anchors - page.anchors):
            gone[path] = lost
    return gone
