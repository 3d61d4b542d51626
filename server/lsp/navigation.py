"""Navigation: definitions, references, links, and a search for documents by title."""

from collections.abc import Collection, Iterable, Iterator
from urllib.parse import unquote

from server.formats.text_positions import KeyPath
from server.index.dangling import MEDIA, Key, pointing
from server.lsp.configuration import uid_at
from server.lsp.keys import MAX_SCANNED_CHARS, scan_nodes
from server.lsp.markdown import anchor_span, link_at, links_in, resolve_link
from server.lsp.positions import Span, Text
from server.lsp.protocol import Json
from server.lsp.view import Source, View
from server.paths import UPLOADS
from server.schema.model import UPLOAD, Type, title_of
from server.site.configure import is_configuration
from server.storage.media import SIDECAR_SUFFIX, media_key

MAX_SYMBOLS = 200
_FILE_SYMBOL = 1
START: Json = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}


# --- definitions ----------------------------------------------------------------------------------


def find_definition(view: View, path: str, params: Json) -> list[Json]:
    """Return where the document, file, component, attribute or heading at a position is defined."""
    source = view.source(path)
    if source is None:
        uid = uid_at(view, path, params) if is_configuration(path) else None
        return _schema_location(view, view.schema.types[uid], ()) if uid else []
    index = source.text.index_of_position(params.get("position"))
    node = source.node_at(index)
    if node is None:
        found = link_at(source.text, path, index)
        return _link_location(view, path, found.destination) if found else []
    if node.value and node.value[0] <= index <= node.value[1]:
        target = source.target_at(node.path)
        if target is not None:
            return locations_of(view, target[1], source.claim.locale)
        if node.path[-1] == "__component":
            type_ = view.schema.types.get(source.value(node.path))
            return _schema_location(view, type_, ()) if type_ else []
    return _attribute_location(view, source, node.path)


def locations_of(view: View, key: Key, locale: str) -> list[Json]:
    document = view.find(key, locale)
    return [{"uri": view.uri(document.path), "range": START}] if document else []


def _link_location(view: View, path: str, link: str) -> list[Json]:
    found = resolve_link(view, path, link)
    if found is None:
        return []
    span, text = anchor_span(view, *found), view.text(found[0])
    return [{"uri": view.uri(found[0]), "range": text.range(span) if span and text else START}]


def _attribute_location(view: View, source: Source, path: KeyPath) -> list[Json]:
    keys = path
    while keys and isinstance(keys[-1], int):
        keys = keys[:-1]
    type_ = source.type_at(keys[:-1]) if keys else None
    name = str(keys[-1]) if keys else ""
    if type_ is None or name not in type_.attributes:
        return []
    return _schema_location(view, type_, ("attributes", name))


def _schema_location(view: View, type_: Type, key_path: KeyPath) -> list[Json]:
    if not type_.path:
        return []
    text = view.text(type_.path)
    span = key_span(type_.path, text, key_path) if text and key_path else None
    return [{"uri": view.uri(type_.path), "range": text.range(span) if text and span else START}]


def key_span(path: str, text: Text, key_path: KeyPath) -> Span | None:
    found = scan_nodes(path, text.value) if len(text.value) <= MAX_SCANNED_CHARS else []
    return next((node.key for node in found if node.path == key_path), None)


# --- references -----------------------------------------------------------------------------------


def find_references(view: View, path: str, params: Json) -> list[Json]:
    """Return all references to the document or media file at a position."""
    key = key_at(view, path, params)
    if key is None:
        return []
    context = params.get("context")
    found = list(_relations_to(view, key))
    found += _links_to(view, key)
    if isinstance(context, dict) and context.get("includeDeclaration"):
        found = [*locations_of(view, key, ""), *found]
    return found


def key_at(view: View, path: str, params: Json) -> Key | None:
    """Return the key of the document or media file that the value or link at a position refers to.

    If there is no reference at the position, return the key of the file's own document.
    """
    if path.startswith(f"{UPLOADS}/"):
        return MEDIA, media_key(path.removesuffix(SIDECAR_SUFFIX)) or ""
    source = view.source(path)
    if source is None:
        return None
    index = source.text.index_of_position(params.get("position"))
    node = source.node_at(index)
    if node and node.value and node.value[0] <= index <= node.value[1]:
        target = source.target_at(node.path)
        if target is not None:
            return target[1]
    elif node is None and (link := link_at(source.text, path, index)):
        return key_of_link(view, path, link.destination)
    return source.claim.type.uid, source.document_id


def key_of_link(view: View, path: str, link: str) -> Key | None:
    """Return the key of the document or media file that a link points to, or None if it points elsewhere."""
    found = resolve_link(view, path, link)
    if found is None:
        return None
    if key := media_key(found[0]):
        return MEDIA, key
    other = view.source(found[0])
    return (other.claim.type.uid, other.document_id) if other else None


def _relations_to(view: View, key: Key) -> Iterator[Json]:
    for document in sorted(pointing(view.snapshot, {key}), key=lambda document: document.path):
        source = view.source(document.path)
        for node in source.nodes if source else ():
            target = source.target_at(node.path) if source and node.value else None
            if source and node.value and target and target[1] == key:
                yield {"uri": view.uri(source.path), "range": source.text.range(node.value)}


def _links_to(view: View, key: Key) -> Iterator[Json]:
    versions = _paths_of(view, key)
    for path in sorted(documents_containing(view, link_search_words(view, versions))):
        text = view.text(path)
        for link in links_in(text, path) if text else ():
            found = resolve_link(view, path, link.destination)
            has_own_entry = found is not None and found[0] == path and link.destination.startswith("#")
            if text and found and found[0] in versions and not has_own_entry:
                yield {"uri": view.uri(path), "range": text.range(link.span)}


def link_search_words(view: View, paths: Iterable[str]) -> set[str]:
    """Return search words. Every link to one of `paths` contains at least one of these words."""
    names = set()
    for path in paths:
        names.add(path.rpartition("/")[2].partition(".")[0])
        document = view.overlay.document(path)
        address = view.overlay.audit.addresses.address(document) if document else None
        if address and (name := address.rstrip("/").rpartition("/")[2]):
            names |= {name, unquote(name)}
    return names


def documents_containing(view: View, words: Collection[str]) -> set[str]:
    """Return the paths of the documents whose Markdown body contains at least one of `words`."""
    found = set()
    for type_ in view.schema.content_types if words else ():
        at = type_.position.get(type_.body or "")
        for document in view.snapshot.tables[type_.uid].versions.values() if at is not None else ():
            body = str(document.read_row()[at] or "") if at is not None else ""
            if any(word in body for word in words):
                found.add(document.path)
    return found


def _paths_of(view: View, key: Key) -> set[str]:
    uid, document_id = key
    if uid == MEDIA:
        return {f"{UPLOADS}/{document_id}"}
    table = view.snapshot.tables.get(uid)
    found = (table.versions.get((document_id, *at)) for at in table.order) if table else ()
    return {document.path for document in found if document is not None}


# --- links and symbols ----------------------------------------------------------------------------


def document_links(view: View, path: str, params: Json) -> list[Json]:
    """Return the relations, media paths and links in a file, each with the file that it refers to."""
    source = view.source(path)
    if source is None:
        return []
    found = []
    for node in source.nodes:
        target = source.target_at(node.path) if node.value else None
        document = view.find(target[1], source.claim.locale) if target else None
        if document is not None and node.value:
            found.append({"range": source.text.range(node.value), "target": view.uri(document.path)})
    for link in links_in(source.text, path):
        destination = resolve_link(view, path, link.destination)
        if destination is not None:
            anchor = f"#{destination[1]}" if destination[1] else ""
            target_uri = view.uri(destination[0]) + anchor
            found.append({"range": source.text.range(link.span), "target": target_uri})
    return found


def documents_by_title(view: View, query: str) -> list[Json]:
    """Return the documents whose title or id contains `query`."""
    folded = query.casefold()
    found: list[Json] = []
    for type_ in view.schema.content_types:
        for document_id, entry in view.titles.titles_of(view.snapshot, type_.uid).items():
            if folded not in entry.folded:
                continue
            document = view.find((type_.uid, document_id))
            if document is not None and type_.uid != UPLOAD and title_of(type_) is not None:
                location = {"uri": view.uri(document.path), "range": START}
                found.append(
                    {
                        "name": entry.title_in(document.locale) or document_id,
                        "kind": _FILE_SYMBOL,
                        "location": location,
                        "containerName": type_.singular,
                    }
                )
            if len(found) >= MAX_SYMBOLS:
                return found
    return found
