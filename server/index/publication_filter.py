"""Publication state of documents, for `publicationFilter` and `publicationStatus`."""

from collections.abc import Callable

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.values import same_values
from server.index.predicates import Test
from server.index.snapshot import Snapshot, View
from server.schema.model import Type

MODIFIED = "modified"  # published, but the draft differs from the published version


def publication_test(view: View, type_: Type) -> Test | None:
    """Return the test for the request's `publicationFilter`, or None if every document passes."""
    if view.publication is None or not type_.draft_publish:
        return None
    snapshot, locales = view.snapshot, view.settings.locales.available

    def is_modified(document: Document) -> bool:
        return _is_modified(snapshot, document)

    def is_published_anywhere(document: Document) -> bool:
        return any(_version(snapshot, document, PUBLISHED, locale) for locale in locales)

    def is_published(document: Document) -> bool:
        return _version(snapshot, document, PUBLISHED, document.locale) is not None

    tests: dict[str, Callable[[Document], bool]] = {
        "never-published": lambda d: not is_published(d),
        "has-published-version": is_published,
        "modified": is_modified,
        "unmodified": lambda d: is_published(d) and not is_modified(d),
        "never-published-document": lambda d: not is_published_anywhere(d),
        "has-published-version-document": is_published_anywhere,
        "published-without-draft": lambda d: False,  # A published document always counts as having a draft.
        "published-with-draft": lambda d: d.status == PUBLISHED,
    }
    passes = tests[view.publication]
    return lambda row, owner, locale: owner is not None and passes(owner)


def publication_status(snapshot: Snapshot, document: Document) -> str:
    """Return `published`, `modified` (published, but the draft differs) or `draft` (not published)."""
    if not document.type.draft_publish:
        return PUBLISHED
    if _version(snapshot, document, PUBLISHED, document.locale) is None:
        return DRAFT
    return MODIFIED if _is_modified(snapshot, document) else PUBLISHED


def _version(snapshot: Snapshot, document: Document, status: str, locale: str) -> Document | None:
    return snapshot.get(document.type, document.document_id, locale, status)


def _is_modified(snapshot: Snapshot, document: Document) -> bool:
    published, draft = (
        _version(snapshot, document, status, document.locale) for status in (PUBLISHED, DRAFT)
    )
    if published is None or draft is None or published is draft:
        return False
    return not same_values(published.values, draft.values)
