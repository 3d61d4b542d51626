"""Completion of keys and values in document files."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Any

from server.documents.document import Document
from server.formats.json import json_text
from server.formats.text_positions import KeyPath
from server.index.dangling import MEDIA, Key
from server.lsp.configuration import complete_configuration
from server.lsp.describe import (
    FILE_KEYS,
    describe_key,
    describe_target,
    describe_type,
    kind,
    media_properties,
)
from server.lsp.insertion import Insertion
from server.lsp.keys import Cursor, cursor_at, sibling_keys
from server.lsp.markdown import complete_link
from server.lsp.new_document import new_document_text
from server.lsp.protocol import Json
from server.lsp.titles import Entry
from server.lsp.view import Source, View
from server.schema.model import Attribute, Type
from server.site.configure import is_configuration
from server.storage.media import mime_type

MAX_ITEMS = 100  # If there are more, the editor sends a new request after each keystroke.

# kinds of completion items
_PROPERTY, _VALUE, _ENUM, _FILE, _REFERENCE, _SNIPPET = 10, 12, 13, 17, 18, 15
_PREFIXES: Mapping[str, str] = {"images": "image/", "videos": "video/", "audios": "audio/"}
NOTHING: Json = {"isIncomplete": False, "items": []}


def complete(view: View, path: str, params: Json) -> Json:
    """Return the completions at a position in a document or configuration file."""
    if is_configuration(path):
        return complete_configuration(view, path, params)
    source = view.source(path)
    if source is None:
        return NOTHING
    index = source.text.index_of_position(params.get("position"))
    if not source.text.value.strip():
        return _completion_list(source, [_document_template(view, source)])
    cursor = cursor_at(path, source.text.value, index)
    if cursor is None:
        return NOTHING
    if cursor.role == "body":
        return complete_link(view, source, index)
    return _Completion(view, source, cursor).items()


def describe_completion(view: View, data: Any) -> str:
    found = data.get("key") if isinstance(data, dict) else None
    if isinstance(found, list) and len(found) == 2 and all(isinstance(part, str) for part in found):
        return describe_target(view, (found[0], found[1]), str(data.get("locale", "")))
    return ""


def _completion_list(source: Source, items: Iterable[Json], *, is_incomplete: bool = False) -> Json:
    return {"isIncomplete": is_incomplete, "items": list(items)}


def _document_template(view: View, source: Source) -> Json:
    text = new_document_text(view, source.path, source.claim)
    span = (0, len(source.text.value))
    return {
        "label": f"new {source.claim.type.singular}",
        "kind": _SNIPPET,
        "detail": "all attributes of the content type",
        "filterText": source.text.value,
        "textEdit": {"range": source.text.range(span), "newText": text},
        "insertTextMode": 1,
    }


@dataclass(frozen=True, eq=False)
class _Completion:
    view: View
    source: Source
    cursor: Cursor

    @cached_property
    def _uri(self) -> str:
        return self.view.uri(self.source.path)

    @cached_property
    def _insert(self) -> Insertion:
        return Insertion(self.source.text, self.cursor, self.view.client.snippets)

    def items(self) -> Json:
        cursor, source = self.cursor, self.source
        attribute = source.attribute_at(cursor.path) if cursor.path else None
        if cursor.role == "value":
            return self._values(attribute, "")
        if attribute is not None and (attribute.has_targets or attribute.type == "enumeration"):
            return self._values(attribute, "" if cursor.role == "item" else "- ")
        is_list = attribute is not None and attribute.to_many and cursor.path[-1:] == (attribute.name,)
        if attribute is not None and attribute.holds_components and is_list:
            return self._entries(attribute, "- " if cursor.style == "yaml" else "")
        type_ = source.type_at(cursor.path)
        if attribute is not None and attribute.type == "dynamiczone" and type_ is None:
            return self._entries(attribute, "")
        return _completion_list(source, self._keys(type_)) if type_ else NOTHING

    # --- keys ----------------------------------------------------------------------------------

    def _keys(self, type_: Type) -> Iterator[Json]:
        known = sibling_keys(self.source.nodes, self.cursor)
        is_top = not self.cursor.path
        body = type_.body if is_top and self.source.text.value.lstrip()[:1] in "-+{" else None
        names = [n for n, a in type_.attributes.items() if n not in known and not a.derived and n != body]
        others = [name for name in FILE_KEYS if not name.startswith("_") and name != "locale"]
        if type_.draft_key and is_top:
            others.append(type_.draft_key.name)
        if is_top:
            names += [name for name in others if name not in known]
        required = [n for n in names if n in type_.attributes and type_.attributes[n].required]
        for order, name in enumerate(dict.fromkeys((*required, *names))):
            attribute = type_.attributes.get(name)
            yield {
                "label": name,
                "kind": _PROPERTY,
                "detail": kind(attribute) if attribute else "",
                "documentation": {"kind": "markdown", "value": describe_key(type_, name)},
                "sortText": f"{order:04}",
                **self._insert.insert_key(name, self._after_key(attribute)),
            }

    def _after_key(self, attribute: Attribute | None) -> str:
        style, indent = self.cursor.style, " " * (self.cursor.indent + 2)
        many = attribute is not None and attribute.to_many
        if style == "json" or style == "toml" or style == "flow":
            texts = ("string", "date")
            quoted = attribute is None or attribute.group in texts or attribute.has_targets
            value = "$0" if style == "flow" or not quoted else '"$0"'
            if attribute is not None and attribute.holds_components:
                value = "{$0\\}"
            return f"[{value}]" if many else value
        if attribute is not None and attribute.holds_components:
            return f"\n{indent}- $0" if many else f"\n{indent}$0"
        return "[$0]" if many else "$0"

    # --- entries of dynamic zones and lists ----------------------------------------------------

    def _entries(self, attribute: Attribute, dash: str) -> Json:
        uids = [attribute.component] if attribute.component else list(attribute.components)
        types = (self.view.schema.types.get(uid or "") for uid in uids)
        return _completion_list(
            self.source, (self._entry(attribute, t, dash) for t in types if t is not None)
        )

    def _entry(self, attribute: Attribute, type_: Type, dash: str) -> Json:
        is_zone = attribute.type == "dynamiczone"
        indent = " " * (self.cursor.indent + len(dash))
        names = [name for name, a in type_.attributes.items() if not a.derived]
        if self.cursor.style == "yaml":
            lines = [f"__component: {type_.uid}"] if is_zone else []
            lines += [f"{name}: ${{{n}}}" for n, name in enumerate(names, start=1)]
            after = dash + f"\n{indent}".join(lines)
        else:
            mark = " = " if self.cursor.style == "toml" else ": "
            quote = '"' if self.cursor.style == "json" else ""
            pairs = [f'{quote}__component{quote}{mark}"{type_.uid}"'] if is_zone else []
            pairs += [f"{quote}{name}{quote}{mark}${{{n}}}" for n, name in enumerate(names, start=1)]
            after = "{" + ", ".join(pairs) + "\\}"
        if not self.view.client.snippets:
            after = re.sub(r"\$\{\d+\}", "", after).replace("\\}", "}")
        return {
            "label": type_.uid,
            "kind": _SNIPPET,
            "detail": type_.display,
            "documentation": {"kind": "markdown", "value": describe_type(type_)},
            **self._insert.replace_span(self.cursor.span, "", after),
        }

    # --- values --------------------------------------------------------------------------------

    def _values(self, attribute: Attribute | None, before: str) -> Json:
        name = self.cursor.path[-1] if self.cursor.path else ""
        if attribute is None:
            return self._system_values(str(name), before)
        if attribute.type == "relation":
            return self._targets(attribute, before) if not attribute.derived else NOTHING
        if attribute.type == "media":
            return self._files(attribute, before)
        if attribute.holds_components and attribute.to_many:
            return self._entries(attribute, "- " if self.cursor.style == "yaml" else "")
        words: Iterable[str] = ()
        if attribute.type == "enumeration":
            words = attribute.enum
        elif attribute.type == "boolean":
            words = ("true", "false")
        elif attribute.type == "date":
            words = (date.today().isoformat(),)
        elif attribute.default is not None and isinstance(attribute.default, str):
            words = (attribute.default,)
        return _completion_list(self.source, self._words(words, before, raw=attribute.type == "boolean"))

    def _system_values(self, name: str, before: str) -> Json:
        source, path = self.source, self.cursor.path
        words: Iterable[str] = ()
        parent = source.attribute_at(path[:-1]) if path else None
        key = source.claim.type.draft_key
        if name == "__component" and parent is not None:
            words = parent.components
        elif name == "__type":
            words = [type_.uid for type_ in self.view.schema.content_types]
        elif name == "locale" and len(path) == 1:
            words = self.view.settings.locales.available
        elif key is not None and path == (key.name,):
            both = (True, False) if isinstance(key.value, bool) else (key.value,)
            return _completion_list(source, self._words([str(one).lower() for one in both], before, raw=True))
        elif name == "documentId" and parent is not None and parent.morph:
            uid = source.value((*path[:-1], "__type"))
            return self._documents([uid] if uid else [], before, with_type=False)
        return _completion_list(source, self._words(words, before))

    def _words(self, words: Iterable[str], before: str, *, raw: bool = False) -> Iterator[Json]:
        for order, word in enumerate(words):
            new = word if raw else self._insert.quoted(word)
            types = self.view.schema.types
            documentation = (
                {"kind": "markdown", "value": describe_type(types[word])} if word in types else None
            )
            item = {
                "label": word,
                "kind": _ENUM,
                "sortText": f"{order:04}",
                **self._insert.insert_value(new, before),
            }
            yield {**item, "documentation": documentation} if documentation else item

    # --- documents and media files -------------------------------------------------------------

    def _targets(self, attribute: Attribute, before: str) -> Json:
        if attribute.polymorphic:
            uids = [type_.uid for type_ in self.view.schema.content_types]
            return self._documents(uids, before, with_type=True)
        return self._documents([attribute.target or ""], before, with_type=False)

    def _documents(self, uids: Iterable[str], before: str, *, with_type: bool) -> Json:
        query, taken = self.cursor.prefix.strip().casefold(), self._used_targets()
        titles = {uid: self.view.titles.titles_of(self.view.snapshot, uid).values() for uid in uids}
        found = _best_matches(titles, query)
        items = []
        for order, (uid, entry) in enumerate(found):
            document_id, title = entry.document_id, self._title(uid, entry)
            if document_id in taken:
                continue
            new = self._morph(uid, document_id) if with_type else self._insert.quoted(document_id)
            items.append(
                {
                    "label": document_id,
                    "labelDetails": {"description": title},
                    "kind": _REFERENCE,
                    "detail": title or uid,
                    "filterText": f"{document_id} {title}",
                    "sortText": f"{order:04}",
                    "data": self._data((uid, document_id)),
                    **self._insert.insert_value(new, before),
                }
            )
        return _completion_list(self.source, items, is_incomplete=len(found) >= MAX_ITEMS)

    def _title(self, uid: str, entry: Entry) -> str:
        locale = self.source.claim.locale
        document = self.view.find((uid, entry.document_id), locale)
        return entry.title_in(document.locale if document else locale)

    def _data(self, key: Key) -> Json:
        return {
            "uri": self._uri,
            "key": list(key),
            "locale": self.source.claim.locale,
        }

    def _morph(self, uid: str, document_id: str) -> str:
        if self.cursor.style == "json":
            return f'{{"__type": "{uid}", "documentId": {json_text(document_id)}}}'
        if self.cursor.style == "toml":
            return f'{{__type = "{uid}", documentId = {json_text(document_id)}}}'
        return f"{{__type: {uid}, documentId: {document_id}}}"

    def _used_targets(self) -> set[str]:
        # The value at the cursor is excluded, so that it is still offered as a completion.
        path: KeyPath = self.cursor.path
        parent = path[:-1] if path and isinstance(path[-1], int) else path
        return {
            self.source.value(node.path)
            for node in self.source.nodes
            if node.path[:-1] == parent
            and node.value
            and isinstance(node.path[-1], int)
            and not node.value[0] <= self.cursor.span[1] <= node.value[1]
        }

    def _files(self, attribute: Attribute, before: str) -> Json:
        query, taken = self.cursor.prefix.strip().casefold(), self._used_targets()
        found = [
            (not name.casefold().startswith(query), name)
            for name in self.view.snapshot.media
            if query in name.casefold() and name not in taken and _is_allowed(attribute, name)
        ]
        items = []
        for order, (_, name) in enumerate(sorted(found)[:MAX_ITEMS]):
            file: Document = self.view.snapshot.media[name]
            items.append(
                {
                    "label": name,
                    "kind": _FILE,
                    "detail": media_properties(file),
                    "sortText": f"{order:04}",
                    "data": self._data((MEDIA, name)),
                    **self._insert.insert_value(self._insert.quoted(name), before),
                }
            )
        return _completion_list(self.source, items, is_incomplete=len(found) > MAX_ITEMS)


def _best_matches(titles: Mapping[str, Collection[Entry]], query: str) -> list[tuple[str, Entry]]:
    matching = [(uid, one) for uid, entries in titles.items() for one in entries if query in one.folded]
    word = f" {query}"
    first = islice((one for one in matching if one[1].folded.startswith(query)), MAX_ITEMS)
    words = islice((one for one in matching if word in one[1].folded), MAX_ITEMS)
    chosen = dict.fromkeys((*first, *words))
    return list(islice(dict.fromkeys((*chosen, *islice(matching, MAX_ITEMS))), MAX_ITEMS))


def _is_allowed(attribute: Attribute, name: str) -> bool:
    if not attribute.allowed_types or "files" in attribute.allowed_types:
        return True
    kinds = tuple(_PREFIXES[allowed] for allowed in attribute.allowed_types if allowed in _PREFIXES)
    return mime_type(name).startswith(kinds)
