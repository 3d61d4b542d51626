"""Updates links in Markdown texts after a rename.

`bifolio mv` prints these links instead of changing them, because a link might be part of an example. An
editor can undo a rename, so this module changes all links except those in code.
"""

from collections.abc import Iterator, Mapping
from posixpath import basename, dirname, relpath, splitext
from urllib.parse import quote, unquote

from server.documents.path_rules import MARKDOWN
from server.lsp.markdown import destination_of, document_at, links_in
from server.lsp.navigation import names_of, paths_with
from server.lsp.positions import Span, Text
from server.lsp.view import View
from server.paths import UPLOADS, UPLOADS_URL
from server.service.unsaved import Plan


def with_links(view: View, plan: Plan) -> Plan:
    """Return `plan` with updated links to renamed files, and updated relative links in renamed files."""
    moved = {path for path in plan.renames if path.endswith(MARKDOWN)}
    texts = dict(plan.texts)
    for path in sorted(moved | paths_with(view, names_of(view, plan.renames))):
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
        found = destination_of(view, path, link.destination) if target else None
        new = _renamed(view, path, target, found[0], renames) if found else target
        if new != target:
            yield link.span, f"{new}{mark}{anchor}"


def _renamed(view: View, path: str, target: str, leads_to: str, renames: Mapping[str, str]) -> str:
    """Return the new destination of a link whose old destination `target` leads to the file `leads_to`."""
    new = renames.get(leads_to, leads_to)
    if target.startswith(UPLOADS_URL):
        return target if new == leads_to else UPLOADS_URL + quote(new.removeprefix(f"{UPLOADS}/"))
    if target.startswith("/"):
        document = document_at(view, path, target) if new != leads_to else None
        addresses = view.overlay.audit.addresses
        if document is None or addresses.address(document) == addresses.address_after_rename(document, new):
            return target
        return addresses.address_after_rename(document, new) or target
    folder = dirname(renames.get(path, path))
    if new == leads_to and folder == dirname(path):
        return target
    if unquote(target).endswith(splitext(leads_to)[1]):
        return quote(relpath(new, folder))
    new, slash = splitext(new)[0], "/" * target.endswith("/")
    is_folder = basename(new) == "index" and not target.endswith("index")
    return quote(relpath(dirname(new) if is_folder else new, folder)) + slash
