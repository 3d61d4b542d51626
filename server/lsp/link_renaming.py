"""Updates of Markdown links after a rename. Links in code and comments are not changed."""

from collections.abc import Iterator, Mapping
from posixpath import basename, dirname, relpath, splitext
from urllib.parse import quote, unquote

from server.documents.path_rules import MARKDOWN
from server.lsp.markdown import find_linked_document, links_in, resolve_link
from server.lsp.navigation import documents_containing, link_search_words
from server.lsp.positions import Span, Text
from server.lsp.view import View
from server.paths import UPLOADS, UPLOADS_URL
from server.service.unsaved import EditorPlan


def with_updated_links(view: View, plan: EditorPlan) -> EditorPlan:
    """Return the plan with additional edits that update Markdown links.

    They update links to renamed files, and relative links inside renamed files.
    """
    moved = {path for path in plan.renames if path.endswith(MARKDOWN)}
    texts = dict(plan.texts)
    for path in sorted(moved | documents_containing(view, link_search_words(view, plan.renames))):
        text = view.text(path)
        if text is None:
            continue
        before, after = texts.get(path, (text.value, text.value))
        changed = after
        for (start, end), link in reversed(list(_changes(view, path, after, plan.renames))):
            changed = changed[:start] + link + changed[end:]
        if changed != after:
            texts[path] = (before, changed)
    return EditorPlan(texts, plan.renames)


def _changes(view: View, path: str, text: str, renames: Mapping[str, str]) -> Iterator[tuple[Span, str]]:
    for link in links_in(Text(text), path):
        target, mark, anchor = link.destination.partition("#")
        found = resolve_link(view, path, link.destination) if target else None
        new = _updated_destination(view, path, target, found[0], renames) if found else target
        if new != target:
            yield link.span, f"{new}{mark}{anchor}"


def _updated_destination(
    view: View, path: str, destination: str, linked_path: str, renames: Mapping[str, str]
) -> str:
    new = renames.get(linked_path, linked_path)
    if destination.startswith(UPLOADS_URL):
        return destination if new == linked_path else UPLOADS_URL + quote(new.removeprefix(f"{UPLOADS}/"))
    if destination.startswith("/"):
        document = find_linked_document(view, path, destination) if new != linked_path else None
        addresses = view.overlay.audit.addresses
        if document is None or addresses.address(document) == addresses.address_after_rename(document, new):
            return destination
        return addresses.address_after_rename(document, new) or destination
    folder = dirname(renames.get(path, path))
    if new == linked_path and folder == dirname(path):
        return destination
    if unquote(destination).endswith(splitext(linked_path)[1]):
        return quote(relpath(new, folder))
    new, slash = splitext(new)[0], "/" * destination.endswith("/")
    is_folder = basename(new) == "index" and not destination.endswith("index")
    return quote(relpath(dirname(new) if is_folder else new, folder)) + slash
