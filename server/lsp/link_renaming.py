"""Updates of links in Markdown texts after a rename.

`bifolio mv` prints these links instead of changing them, because a link might be part of an example. An
editor can undo a rename, so this module changes all links except those in code.
"""

from collections.abc import Iterator, Mapping
from posixpath import basename, dirname, relpath, splitext
from urllib.parse import quote, unquote

from server.documents.path_rules import MARKDOWN
from server.lsp.markdown import document_at, links_in, resolve_link
from server.lsp.navigation import documents_containing, words_of_links
from server.lsp.positions import Span, Text
from server.lsp.view import View
from server.paths import UPLOADS, UPLOADS_URL
from server.service.unsaved import Plan


def with_updated_links(view: View, plan: Plan) -> Plan:
    """Add link updates to a plan: links to renamed files, and relative links in renamed files."""
    moved = {path for path in plan.renames if path.endswith(MARKDOWN)}
    texts = dict(plan.texts)
    for path in sorted(moved | documents_containing(view, words_of_links(view, plan.renames))):
        text = view.text(path)
        if text is None:
            continue
        before, after = texts.get(path, (text.value, text.value))
        changed = after
        for (start, end), link in reversed(list(_changes(view, path, after, plan.renames))):
            changed = changed[:start] + link + changed[end:]
        if changed != after:
            texts[path] = (before, changed)
    return Plan(texts, plan.renames)


def _changes(view: View, path: str, text: str, renames: Mapping[str, str]) -> Iterator[tuple[Span, str]]:
    for link in links_in(Text(text), path):
        target, mark, anchor = link.destination.partition("#")
        found = resolve_link(view, path, link.destination) if target else None
        new = _updated_destination(view, path, target, found[0], renames) if found else target
        if new != target:
            yield link.span, f"{new}{mark}{anchor}"


def _updated_destination(
    view: View, path: str, target: str, target_path: str, renames: Mapping[str, str]
) -> str:
    """Return the new destination of a link. `target` is its old destination, which leads to `target_path`."""
    new = renames.get(target_path, target_path)
    if target.startswith(UPLOADS_URL):
        return target if new == target_path else UPLOADS_URL + quote(new.removeprefix(f"{UPLOADS}/"))
    if target.startswith("/"):
        document = document_at(view, path, target) if new != target_path else None
        addresses = view.overlay.audit.addresses
        if document is None or addresses.address(document) == addresses.address_after_rename(document, new):
            return target
        return addresses.address_after_rename(document, new) or target
    folder = dirname(renames.get(path, path))
    if new == target_path and folder == dirname(path):
        return target
    if unquote(target).endswith(splitext(target_path)[1]):
        return quote(relpath(new, folder))
    new, slash = splitext(new)[0], "/" * target.endswith("/")
    is_folder = basename(new) == "index" and not target.endswith("index")
    return quote(relpath(dirname(new) if is_folder else new, folder)) + slash
