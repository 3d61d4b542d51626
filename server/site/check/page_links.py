"""Links to the addresses of pages: which documents they lead to, and which links are broken."""

from collections.abc import Iterator
from functools import cached_property
from urllib.parse import unquote

from server.documents.addresses import ALIAS_KEYS
from server.documents.document import Document
from server.formats.tree import SyntaxProblem
from server.schema.model import Type
from server.schema.spelling import Suggestions
from server.site.aliases import normalized, read_aliases, source_of, source_of_address
from server.site.check.audit import Audit
from server.site.check.branch_changes import files_that_contain
from server.storage.git.repository import git_folder


class PageLinks:
    """Lookup of the documents to whose pages links lead, in one state of a site."""

    def __init__(self, audit: Audit, suggestions: Suggestions) -> None:
        self._audit, self._suggestions = audit, suggestions
        self._origins: dict[str, str] = {}

    def path_of(self, path: str, target: str) -> str | None:
        """Return the file of the document to whose page the link `target` in the file at `path` leads, or
        None.
        """
        addresses = self._audit.addresses
        if not addresses.pages:
            return None
        document = addresses.document_at(target, self._origin_of(path))
        return document.path if document else None

    def fault_of(self, path: str, target: str) -> tuple[str, str] | None:
        """Return what is wrong with a link in the file at `path` to the address `target`, which has no
        document, and how to fix it. Return None if the front end might have another page at this address.
        """
        addresses = self._audit.addresses
        found = addresses.exclusive(target, self._origin_of(path))
        if found is None or normalized(unquote(target)) in self._aliases:
            return None
        pages, value = found
        if self._may_be_unreadable(pages.type, normalized(unquote(target))):
            return None
        known = addresses.by_value(pages.type, pages.key) if pages.key else {}
        near = self._suggestions.nearest(value, known)
        others = filter(None, map(addresses.address, known[near] if near else ()))
        fix = next((f'did you mean "{other}"?' for other in others), "correct the link, or add an alias")
        return f"leads to {target}, but no {pages.type.singular} has this address", fix

    def _origin_of(self, path: str) -> str:
        if path not in self._origins:
            document = self._audit.documents.get(path)
            self._origins[path] = self._audit.addresses.origin(document) if document else ""
        return self._origins[path]

    def _may_be_unreadable(self, type_: Type, wanted: str) -> bool:
        """Return whether the address `wanted` might belong to a document whose file is invalid. If so, only
        the problem in that file is reported.
        """
        broken = [document for document in self._audit.broken if document.type is type_]
        urls = [self._audit.addresses.url(document) for document in broken]
        return any(url is None or source_of_address(url)[1] == wanted for url in urls)

    @cached_property
    def _aliases(self) -> frozenset[str]:
        """The aliases of all documents: additional addresses that their files list."""
        found = (_aliases_in(self._audit, path) for path in _paths_with_aliases(self._audit))
        return frozenset(alias for aliases in found for alias in aliases)


def _paths_with_aliases(audit: Audit) -> Iterator[str]:
    """Yield the paths of the document files that might contain aliases."""
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
    yield from aliases_of(audit.documents[path], text, audit)


def aliases_of(document: Document, text: str, audit: Audit) -> Iterator[str]:
    """Yield the aliases in `text`, the text of a document's file, in the form that `normalized` returns."""
    url, from_root = audit.addresses.url(document) or "", audit.settings.redirects.aliases_from_root
    for alias, _ in read_aliases(document.path, text.encode(errors="replace")):
        try:
            yield source_of(alias, url, from_root=from_root)[1]
        except ValueError:
            continue
