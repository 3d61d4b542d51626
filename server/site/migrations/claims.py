"""Files that a schema change would assign to other documents."""

from collections.abc import Collection, Iterator

from server.documents.file_keys import is_marked_as_draft
from server.documents.path_rules import ENDINGS, MARKDOWN, Layout, PathClaim
from server.errors import ConflictError
from server.formats.tree import SyntaxProblem
from server.site.configure import Configuration
from server.site.migrations.draft import Draft, Finding
from server.storage.read import parse

_RENAME = "rename this file first"


def require_same_documents(draft: Draft, before: Configuration) -> None:
    """Raise ValidationError if a file that the migration does not write would belong to another document."""
    after = draft.configuration()
    draft.refusals += find_reclaimed(draft, before, after, draft.original_texts, may_adopt=draft.may_adopt)
    draft.require_possible()


def find_reclaimed(
    draft: Draft,
    before: Configuration,
    after: Configuration,
    written: Collection[str],
    *,
    may_adopt: bool = False,
) -> Iterator[Finding]:
    """Yield a finding for each file whose document, locale, status or content type would change.

    The files in `written` are skipped. If `may_adopt` is set, files that belong to no document may become
    documents.
    """
    then, now = (Layout(each.schema, each.settings) for each in (before, after))
    if then.rules == now.rules:
        return
    for path in draft.paths:
        if path in written or not path.endswith(ENDINGS):
            continue
        old, new = then.claim(path), now.claim(path)
        if old is None and new is not None and may_adopt:
            continue
        if found := _difference(draft, path, old, new, _renamed_types(before, after)):
            draft.permit(path)
            yield Finding(path, (), *found)


def _renamed_types(before: Configuration, after: Configuration) -> tuple[Collection[str], Collection[str]]:
    old, new = before.schema.types.keys(), after.schema.types.keys()
    return old - new, new - old


def _difference(
    draft: Draft,
    path: str,
    old: PathClaim | None,
    new: PathClaim | None,
    renamed: tuple[Collection[str], Collection[str]],
) -> tuple[str, str] | None:
    if old is None or new is None:
        if old is None and new is None:
            return None
        what = f"would become a document of {new.type.uid}" if new else "would no longer be a document"
        return what, "move this file first"
    is_renamed = old.type.uid in renamed[0] and new.type.uid in renamed[1]
    if old.type.uid != new.type.uid and not is_renamed:
        return f"would become a document of {new.type.uid}", "move this file first"
    if _is_draft(draft, path, old) != _is_draft(draft, path, new):
        if new.draft:
            return "would become a draft", _RENAME
        return "this draft would become a published document", "publish or discard it first"
    has_locales = old.type.localized or new.type.localized
    if old.name != new.name or (has_locales and old.locale != new.locale):
        if old.type.localized and not new.type.localized:
            return "this translation would become another document", "delete it first"
        return "would become a translation of another document", _RENAME
    return None


def _is_draft(draft: Draft, path: str, claim: PathClaim) -> bool:
    if claim.draft or claim.type.draft_key is None or not claim.type.draft_publish:
        return claim.draft
    try:
        tree = parse(path, draft.text(path), claim.type.body if path.endswith(MARKDOWN) else None)
    except (SyntaxProblem, ConflictError):
        return False
    return is_marked_as_draft(claim.type, claim.name, tree)
