"""`publicationFilter`: which documents are shown, by what is published of them and what is a draft."""

from collections.abc import Callable

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.values import same_values
from server.index.predicates import Test
from server.index.snapshot import View
from server.schema.model import Type


def publication_test(view: View, type_: Type) -> Test | None:
    """Whether a document of a type passes the view's filter; None where all do, as without drafts."""
    if view.publication is None or not type_.draft_publish:
        return None
    snapshot, locales = view.snapshot, view.settings.locales

    def version(document: Document, status: str, locale: str) -> Document | None:
        return snapshot.get(document.type, document.document_id, locale, status)

    def modified(document: Document) -> bool:
        live, draft = (version(document, s, document.locale) for s in (PUBLISHED, DRAFT))
        if live is None or draft is None or live is draft:
            return False
        return not same_values(live.values, draft.values)

    def anywhere(document: Document) -> bool:
        return any(version(document, PUBLISHED, locale) for locale in locales)

    def live(document: Document) -> bool:
        return version(document, PUBLISHED, document.locale) is not None

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
