"""Attributes that the locales of a document share, and of which their files say different things."""

from collections import defaultdict
from collections.abc import Iterator

from server.documents.document import PUBLISHED, Document
from server.documents.values import is_empty, same_values
from server.formats.text_positions import line_and_column
from server.problems import Problem
from server.schema.model import Type
from server.site.check.audit import Audit
from server.write.context import values_of


def unequal_locales(audit: Audit) -> Iterator[Problem]:
    """Files that say something else of a shared attribute than that of the first locale with the document."""
    order = {locale: i for i, locale in enumerate(audit.settings.locales)}
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
