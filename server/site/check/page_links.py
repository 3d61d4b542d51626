"""Checker for links to page addresses."""

from collections.abc import Iterator
from functools import cached_property
from urllib.parse import unquote

from server.documents.addresses import ALIAS_KEYS
from server.documents.document import Document
from server.documents.ids import id_of_name
from server.formats.tree import SyntaxProblem
from server.schema.model import Type
from server.schema.spelling import Suggestions
from server.site.aliases import normalize_path, parse_address, read_aliases, resolve_alias
from server.site.check.audit import Audit
from server.site.check.branch_changes import files_that_contain
from server.site.check.page_addresses import INDEX_NAMES, AddressMatch
from server.storage.git.log import CERTAIN_RENAME_PERCENT
from server.storage.git.repository import git_folder


class PageLinks:
    """Checker for links to the pages of documents."""

    def __init__(self, audit: Audit, suggestions: Suggestions) -> None:
        self._audit, self._suggestions = audit, suggestions
        self._origins: dict[str, str] = {}

    def resolve(self, source_path: str, target: str) -> str | None:
        addresses = self._audit.addresses
        if not addresses.pages:
            return None
        document = addresses.document_at(target, self._origin_of(source_path))
        return document.path if document else None

    def find_fault(self, source_path: str, target: str) -> tuple[str, str] | None:
        """Return what is wrong with a link that leads to no document, and how to fix it.

        Return None if the front end might have a page at this address.
        """
        addresses, address_path = self._audit.addresses, normalize_path(unquote(target))
        matches = list(addresses.find_matches(target, self._origin_of(source_path)))
        if not matches or address_path in self._aliases:
            return None
        former = ((match, self._current_address(match)) for match in matches)
        match, now = next((found for found in former if found[1]), (matches[0], None))
        if not now and not addresses.must_be_document(match, target):
            return None
        if self._may_be_unreadable(match.addresses.type, address_path) or addresses.is_untranslated(
            match, target
        ):
            return None
        address = now or self._most_similar_address(source_path, match)
        fix = f'did you mean "{address}"?' if address else "correct the link, or add an alias"
        return f"leads to {target}, but no {match.addresses.type.singular} has this address", fix

    def _current_address(self, match: AddressMatch) -> str | None:
        uid = match.addresses.type.uid
        if match.addresses.key not in ("name", "documentId"):
            return None
        for end in ("", *INDEX_NAMES):
            rename = self._audit.renames.get((uid, id_of_name(match.key_value + end)))
            if rename and rename.similarity_percent >= CERTAIN_RENAME_PERCENT:
                found = self._audit.snapshot.tables[uid].versions
                documents = [d for (i, _, _), d in found.items() if i == rename.name]
                documents.sort(key=lambda d: (d.locale != match.locale, d.path))
                return next(filter(None, map(self._audit.addresses.address, documents)), None)
        return None

    def _most_similar_address(self, path: str, match: AddressMatch) -> str | None:
        pages, value, locale = match
        known = self._audit.addresses.documents_by_placeholder(pages.type, pages.key) if pages.key else {}
        own = self._audit.documents.get(path)
        for wanted in dict.fromkeys((own.locale if own and own.type.localized else locale, locale, "")):
            inside = {v: [d for d in ds if wanted in ("", d.locale)] for v, ds in known.items()}
            near = self._suggestions.nearest(value, (v for v, documents in inside.items() if documents))
            found = next(filter(None, map(self._audit.addresses.address, inside.get(near, ()))), None)
            if found:
                return found
        return None

    def _origin_of(self, path: str) -> str:
        if path not in self._origins:
            document = self._audit.documents.get(path)
            self._origins[path] = self._audit.addresses.origin(document) if document else ""
        return self._origins[path]

    def _may_be_unreadable(self, type_: Type, address: str) -> bool:
        broken = [document for document in self._audit.invalid_documents if document.type is type_]
        urls = [self._audit.addresses.url(document) for document in broken]
        return any(url is None or parse_address(url)[1] == address for url in urls)

    @cached_property
    def _aliases(self) -> frozenset[str]:
        found = (_aliases_in(self._audit, path) for path in _paths_with_aliases(self._audit))
        return frozenset(alias for aliases in found for alias in aliases)


def _paths_with_aliases(audit: Audit) -> Iterator[str]:
    is_in_git = git_folder(audit.root) is not None
    found = files_that_contain(audit.root, list(ALIAS_KEYS), untracked=True) if is_in_git else audit.claims
    for path in {*found, *audit.texts}:
        if path in audit.documents:
            yield path


def _aliases_in(audit: Audit, path: str) -> Iterator[str]:
    try:
        text = audit.text(path)
    except (OSError, SyntaxProblem):
        return
    yield from normalized_aliases(audit.documents[path], text, audit)


def normalized_aliases(document: Document, text: str, audit: Audit) -> Iterator[str]:
    url, from_root = audit.addresses.url(document) or "", audit.settings.redirects.aliases_from_root
    for alias, _ in read_aliases(document.path, text.encode(errors="replace")):
        try:
            yield resolve_alias(alias, url, from_root=from_root)[1]
        except ValueError:
            continue
