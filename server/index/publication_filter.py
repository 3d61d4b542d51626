"""What is published of a document and what is a draft: `publicationFilter` and `publicationStatus`."""

from collections.abc import Callable

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.values import same_values
from server.index.predicates import Test
from server.index.snapshot import Snapshot, View
from server.schema.model import Type

MODIFIED = "modified"  # Published, with a draft that differs.


def publication_test(view: View, type_: Type) -> Test | None:
    """Whether a document of a type passes the view's filter; None where all do, as without drafts."""
    if view.publication is None or not type_.draft_publish:
        return None
    snapshot, locales = view.snapshot, view.settings.locales.available

    def modified(document: Document) -> bool:
        return _is_modified(snapshot, document)

    def anywhere(document: Document) -> bool:
        return any(_version(snapshot, document, PUBLISHED, locale) for locale in locales)

    def live(document: Document) -> bool:
        return _version(snapshot, document, PUBLISHED, document.locale) is not None

    tests: dict[str, Callable[[Document], bool]] = {
        "never-published": lambda d: not live(d),
        "has-published-version": live,
        "modified": modified,
        "unmodified": lambda d: live(d) and not modified(d),
        "never-published-document": lambda d: not anywhere(d),
        "has-published-version-document": anywhere,
        "published-without-draft": lambda d: False,  # a published document always has a draft
        "published-with-draft": lambda d: d.status == PUBLISHED,
    }
    passes = tests[view.publication]
    return lambda row, owner, locale: owner is not None and passes(owner)


def publication_status(snapshot: Snapshot, document: Document) -> str:
    """Return whether a document is `published`, `modified` since, or only a `draft`, in its locale."""
    if not document.type.draft_publish:
        return PUBLISHED
    if _version(snapshot, document, PUBLISHED, document.locale) is None:
        return DRAFT
    return MODIFIED if _is_modified(snapshot, document) else PUBLISHED


def _version(snapshot: Snapshot, document: Document, status: str, locale: str) -> Document | None:
    return snapshot.get(document.type, document.document_id, locale, status)


def _is_modified(snapshot: Snapshot, document: Document) -> bool:
    """Return whether the draft of a document has other values than what is published of it."""
    live, draft = (_version(snapshot, document, status, document.locale) for status in (PUBLISHED, DRAFT))
    if live is None or draft is None or live is draft:
        return False
    return not same_values(live.values, draft.values)
