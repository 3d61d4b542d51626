"""Checks of file names, document ids and locales."""

import os.path
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from server.config.model import FILE
from server.config.values import LOCALE
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.locale_names import is_language
from server.documents.path_rules import ENDINGS, MARKDOWN, PathClaim, is_partial
from server.formats.text_positions import line_and_column
from server.paths import CONTENT, UPLOADS
from server.problems import Problem
from server.schema.model import Type
from server.schema.spelling import Suggestions, suggestion
from server.site.check.audit import Audit, is_upload
from server.storage.media import SIDECAR_SUFFIX


def find_unclaimed(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each file without a content type, and each description without a media file."""
    in_bucket = {file.path for file in audit.snapshot.media.values() if file.get("provider_metadata")}
    for path in sorted(audit.files - audit.claims.keys()):
        if is_upload(path):
            described = path.removesuffix(SIDECAR_SUFFIX)
            lost = described not in audit.files and described not in in_bucket
            if lost and path.endswith(SIDECAR_SUFFIX) and os.path.splitext(described)[1]:
                yield _lost_description(audit, path, described)
        elif _should_be_claimed(audit, path):
            message, fix = _why_unclaimed(audit, path)
            yield Problem(path, None, message, fix, "warning", None, "unclaimed")


def _should_be_claimed(audit: Audit, path: str) -> bool:
    if all(t.files for t in audit.types):
        read = (*MARKDOWN, *(os.path.splitext(p)[1] for t in audit.types for p in t.files))
        if not path.endswith(read):
            return False
    patterns = [p for t in audit.types for p in t.files if "{name}" in p]
    trees = {p.partition("{")[0].rpartition("/")[0] for p in patterns}
    around = [tree for tree in trees if path.startswith(f"{tree}/") or not tree]
    if not around or (around == [""] and path.startswith(f"{CONTENT}/")):
        return path.startswith(f"{CONTENT}/")
    if is_partial(path):
        return False
    endings = {os.path.splitext(p)[1] for p in patterns}
    if os.path.basename(path).lower() == "readme.md" and not endings.intersection(MARKDOWN):
        return False  # It describes a folder that contains data files.
    # If documents can be anywhere in the site, ignore schemas and top-level files such as README.md.
    if around == [""]:
        return "/" in path and not path.startswith("content-types/") and path.endswith(tuple(endings))
    return path.endswith((*MARKDOWN, *endings))


def _lost_description(audit: Audit, path: str, described: str) -> Problem:
    folder = os.path.dirname(path)
    beside = [f for f in audit.files if os.path.dirname(f) == folder and not f.endswith(SIDECAR_SUFFIX)]
    fix = suggestion(described, beside) or "add the file, or remove this description"
    return Problem(
        path, None, f"describes the file {described}, which does not exist", fix, "warning", None, "dangling"
    )


def _why_unclaimed(audit: Audit, path: str) -> tuple[str, str]:
    if not path.endswith(ENDINGS):
        return "is not a document file", f"move it to {UPLOADS}, or remove it"
    name = path.removeprefix(f"{CONTENT}/")
    folder, inside, _ = name.partition("/")
    plurals = [t.plural for t in audit.types if t.kind == "collectionType" and not t.files]
    if path.startswith(f"{CONTENT}/") and inside:
        near = next((t.plural for t in audit.types if t.singular == folder), "")
        near = f'did you mean "{CONTENT}/{near}"?' if near else suggestion(folder, plurals)
        return (
            f'the folder "{folder}" does not belong to a content type',
            near or "move the file, or add a content type",
        )
    singles = [t.singular for t in audit.types if t.kind == "singleType" and not t.files]
    if path.startswith(f"{CONTENT}/"):
        stem = folder.partition(".")[0]
        return f'there is no single type with the name "{stem}"', suggestion(
            stem, singles
        ) or "move the file into the folder of a content type"
    patterns = ", ".join(p for t in audit.types for p in t.files if path.startswith(p.partition("{")[0]))
    return (
        "the file does not belong to a content type",
        f"rename it to match one of {patterns}" if patterns else "move it",
    )


# --- versions -------------------------------------------------------------------------------------

# If a site is copied, files without timestamps get times that differ by up to this much.
MAX_COPY_DURATION = timedelta(minutes=1)


def find_unserved_translations(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each file that is named like a translation but served as a separate document."""
    stems = {os.path.splitext(path)[0] for path in audit.claims}
    for path, claim in sorted(audit.claims.items()):
        stem, last = os.path.splitext(os.path.splitext(path)[0])
        code = last[1:]
        if stem not in stems or not (LOCALE.fullmatch(code) and is_language(code)) or claim.locale == code:
            continue
        elif not claim.type.localized:
            fix = f"set pluginOptions.i18n.localized to true in {claim.type.path}"
        else:
            fix = f"add {code} to locales.available in {FILE}"
        message = (
            f'the file name contains the locale "{code}", '
            f'but the file is served as a separate document, "{claim.document_id}"'
        )
        yield Problem(path, None, message, f"{fix}, or rename the file", "warning", None, "file-name")


def find_missing_ids(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each file without a documentId if another version of its document contains one."""
    for path, (written, other) in missing_document_ids(audit).items():
        what = (
            f'has no documentId, but {other} contains the documentId "{written}", '
            "so the two files are separate documents"
        )
        fix = f'add "documentId: {written}" if both files belong to the same document'
        yield Problem(path, None, what, fix, "warning", None, "missing-id", ("documentId",))


def missing_document_ids(audit: Audit) -> Mapping[str, tuple[str, str]]:
    """Return the files without a documentId for which another version of their document contains one.

    The result maps the path of each such file to this documentId and to the path of the other version.
    """
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


def find_orphaned_translations(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each translation whose document does not exist in the default locale."""
    default = audit.settings.locales.default
    fixed = missing_document_ids(audit)
    suggestions = Suggestions()
    for type_ in audit.types:
        defaults = _ids(audit, type_, default)
        for path, document in sorted(_documents_of(audit, type_).items()):
            if document.locale == default or document.document_id in defaults or path in fixed:
                continue
            if _path_in_locale(audit, path, default) is None:
                what = f'the document "{document.document_id}" is missing in the default locale ({default})'
                fix = (
                    _rename_advice(audit, path, document, defaults)
                    or suggestions.suggest(
                        document.document_id, sorted(defaults - _ids(audit, type_, document.locale))
                    )
                    or f"add {_sibling(audit, path, default)}"
                )
                yield Problem(path, None, what, fix, "warning", None, "translation")


def _rename_advice(audit: Audit, path: str, document: Document, default_ids: set[str]) -> str:
    rename = audit.renames.get((document.type.uid, document.document_id))
    claim = audit.claims.get(path)
    if rename is None or claim is None or rename.name not in default_ids:
        return ""
    default = audit.settings.locales.default
    versions = audit.snapshot.tables[document.type.uid].versions.items()
    renamed = (d.path for (i, locale, _), d in versions if (i, locale) == (rename.name, default))
    there = next((found for other in renamed if (found := audit.claims.get(other))), None)
    if there is None:
        return ""
    wanted = PathClaim(claim.type, there.name, claim.locale, claim.draft)
    new = audit.layout.path_of(wanted, os.path.splitext(path)[1], audit.layout.pattern_of(path))
    return f"rename it to {new}, because the default locale was renamed"


def find_untranslated(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each missing translation of a published document."""
    default = audit.settings.locales.default
    for type_ in audit.types:
        for locale in audit.settings.locales.available if type_.localized else ():
            translated = _ids(audit, type_, locale)
            for path, document in sorted(_documents_of(audit, type_).items()):
                is_missing = document.locale == default != locale and document.document_id not in translated
                if (
                    is_missing
                    and document.status == PUBLISHED
                    and _path_in_locale(audit, path, locale) is None
                ):
                    fix = f"add {_sibling(audit, path, locale)}"
                    yield Problem(
                        path,
                        None,
                        f"the document has no version in the locale {locale}",
                        fix,
                        "warning",
                        None,
                        "translation",
                    )


def _documents_of(audit: Audit, type_: Type) -> Mapping[str, Document]:
    return {path: d for path, d in audit.documents.items() if d.type.uid == type_.uid}


def _ids(audit: Audit, type_: Type, locale: str) -> set[str]:
    return {i for i, found, _ in audit.snapshot.tables[type_.uid].versions if found == locale}


def _sibling(audit: Audit, path: str, locale: str) -> str:
    claim = audit.claims[path]
    wanted = PathClaim(claim.type, claim.name, locale, False)
    return audit.layout.path_of(wanted, os.path.splitext(path)[1], audit.layout.pattern_of(path))


def _path_in_locale(audit: Audit, path: str, locale: str) -> str | None:
    stem = os.path.splitext(_sibling(audit, path, locale))[0]
    names = (f"{stem}{draft}{ending}" for draft in ("", ".draft") for ending in ENDINGS)
    return next((name for name in names if name in audit.files), None)


def find_stale_drafts(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each draft that is older than its published version."""
    for document in audit.documents.values():
        if document.status != DRAFT:
            continue
        key = (document.type.uid, document.document_id, document.locale, PUBLISHED)
        live = next(iter(audit.snapshot.claims.get(key, ())), None)
        if live and _timestamp(document) + MAX_COPY_DURATION < _timestamp(live):
            position = audit.position(document.path, ("updatedAt",))
            line, column = line_and_column(position)
            drafted, published = (d.updated_at[:16].replace("T", " ") for d in (document, live))
            what = (
                f"the draft (last changed {drafted}) is older than the published version in {live.path} "
                f"({published})"
            )
            fix = "update or remove the draft"
            yield Problem(document.path, line, what, fix, "warning", column, "stale-draft")


def _timestamp(document: Document) -> datetime:
    return datetime.fromisoformat(document.updated_at)
