"""Completion, hover and definitions in site.yaml and schemas."""

from collections.abc import Iterable, Iterator, Mapping

from server.config.media import SERVE_MODES
from server.config.model import FILE, KEYS, known_actions
from server.config.public_site import FEED_KEYS, ITEM_KEYS
from server.config.sections import PREVIEW_KEYS, TYPE_KEYS
from server.config.webhooks import WEBHOOK_KEYS
from server.formats.text_positions import KeyPath
from server.lsp.flow import Node
from server.lsp.insertion import Insertion
from server.lsp.keys import Cursor, cursor_at, scan_nodes, sibling_keys
from server.lsp.positions import Text
from server.lsp.protocol import Json
from server.lsp.view import View
from server.problems import RULE_SEVERITIES, RULES
from server.schema.load import FORMATS, FRONT_MATTER
from server.schema.model import ATTRIBUTE_TYPES, RELATIONS
from server.schema.spelling import ATTRIBUTE_KEYS, I18N_KEYS, INFO_KEYS, OPTION_KEYS, TOP_KEYS

_PROPERTY, _ENUM = 10, 13
Words = Mapping[str, str]  # words with their descriptions

# allowed values, by kind of setting
_SETTING_WORDS: Mapping[str, Iterable[str]] = {
    "flag": ("true", "false"),
    "choice": ("reject", "allow"),
    "format": ("v5", "v4"),
    "timestamps": ("file", "git"),
    "commit": ("each", "off"),
    "push": ("before", "after", "off"),
    "follow": ("off",),
    "serve": SERVE_MODES,
}
SCHEMA_KEYS: Words = {
    "kind": "`collectionType` for a list of documents, or `singleType` for one document.",
    "info": "The names of the content type.",
    "singularName": "The name in permissions and uids, such as `article`.",
    "pluralName": "The name in URLs and folders, such as `articles`.",
    "displayName": "The name in the studio.",
    "description": "A sentence that explains the content type or attribute.",
    "options": "Drafts, files and formats of the content type.",
    "draftAndPublish": "Whether documents can be drafts.",
    "files": "The paths of the documents' files, such as `docs/{name}.md`.",
    "format": "The format of new files.",
    "frontMatter": "The format of front matter in new files.",
    "draftWhen": "The key and value that mark a file as a draft, such as `{draft: true}`.",
    "body": "The attribute that contains the text below the front matter.",
    "otherKeys": "The `json` attribute that collects keys which are not attributes.",
    "fileName": "The names of new files, such as `{date}-{slug}`.",
    "attributes": "The attributes, by name.",
    "type": "The type of the attribute's values.",
    "required": "Whether a published document must have a value.",
    "unique": "Whether each value may occur in only one document.",
    "private": "Whether responses omit the attribute.",
    "default": "The value of documents that contain no value.",
    "min": "The smallest number, or the lowest number of entries.",
    "max": "The largest number, or the highest number of entries.",
    "minLength": "The minimum number of characters.",
    "maxLength": "The maximum number of characters.",
    "regex": "A regular expression that each value must match.",
    "enum": "The allowed values.",
    "targetField": "The attribute from which a `uid` is usually made.",
    "relation": "How many documents can be on each side.",
    "target": "The uid of the content type to which the relation refers.",
    "inversedBy": "The attribute of the target that shows the other side of the relation.",
    "mappedBy": "The attribute of the target in which the relation is stored.",
    "component": "The uid of the component, such as `shared.seo`.",
    "components": "The uids of the components that the dynamic zone can contain.",
    "repeatable": "Whether the value is a list of components.",
    "multiple": "Whether the value is a list of files.",
    "allowedTypes": "The kinds of files: `images`, `videos`, `audios`, `files`.",
    "pluginOptions": "`i18n.localized` makes a content type or attribute localized.",
    "localized": "Whether each locale has its own documents or values.",
}
_RULES = {name: rule.description for name, rule in RULES.items()}
# Keys of mappings in site.yaml. An asterisk stands for any key, and a dash for any index.
_ENTRIES: tuple[tuple[KeyPath, Words], ...] = (
    (
        ("roles",),
        {"public": "Requests without a token or login.", "authenticated": "Users who are logged in."},
    ),
    (("check", "ignore"), _RULES),
    (("check", "rules"), _RULES),
    (("export", "types", "*"), TYPE_KEYS),
    (("preview", "*"), PREVIEW_KEYS),
    (("feeds", "*"), FEED_KEYS),
    (("feeds", "*", "item"), ITEM_KEYS),
    (("webhooks", "-"), WEBHOOK_KEYS),
)
_FLAGS = frozenset(
    {"required", "unique", "private", "repeatable", "multiple", "draftAndPublish", "localized"}
)


def complete_configuration(view: View, path: str, params: Json) -> Json:
    """Return the completions at a position in site.yaml or a schema."""
    text = view.text(path)
    index = text.index_of_position(params.get("position")) if text else 0
    cursor = cursor_at(path, text.value, index) if text else None
    if text is None or cursor is None:
        return {"isIncomplete": False, "items": []}
    insertion = Insertion(text, cursor, view.client.snippets)
    file = _ConfigurationFile(view, path, text)
    items: list[Json] = []
    if cursor.role in ("key", "item"):
        items += _keys(file, cursor, insertion, sibling_keys(file.nodes, cursor))
    if not items:
        is_in_block = cursor.role == "key" and cursor.style == "yaml"
        items += _values(file, cursor, insertion, "- " if is_in_block else "")
    return {"isIncomplete": False, "items": items}


class _ConfigurationFile:
    def __init__(self, view: View, path: str, text: Text) -> None:
        self.view, self.path, self.text = view, path, text
        self.nodes: list[Node] = scan_nodes(path, text.value)

    def value(self, path: KeyPath) -> str:
        found = next((node.value for node in self.nodes if node.path == path), None)
        return self.text.value[slice(*found)] if found else ""

    @property
    def is_settings(self) -> bool:
        return self.path == FILE

    @property
    def attributes(self) -> list[str]:
        paths = (node.path for node in self.nodes if len(node.path) == 2)
        return [str(path[1]) for path in paths if path[0] == "attributes"]


def _keys(file: _ConfigurationFile, cursor: Cursor, insertion: Insertion, known: set[str]) -> Iterator[Json]:
    names = setting_keys(file.view, cursor.path) if file.is_settings else _schema_keys(cursor.path)
    for order, (name, sentence) in enumerate(names.items()):
        if name not in known:
            yield {
                "label": name,
                "kind": _PROPERTY,
                "documentation": {"kind": "markdown", "value": sentence},
                "sortText": f"{order:04}",
                **insertion.insert_key(name, _after(file, (*cursor.path, name), cursor)),
            }


def _after(file: _ConfigurationFile, path: KeyPath, cursor: Cursor) -> str:
    if file.is_settings:
        names = tuple(map(str, path))
        is_section = any(key.path[: len(names)] == names and key.path != names for key in KEYS.values())
        if is_section and cursor.style == "yaml":
            return f"\n{' ' * (cursor.indent + 2)}$0"
        return "{$0\\}" if is_section else "$0"
    if cursor.style != "json":
        return "$0"
    if path[-1] in ("info", "options", "attributes", "pluginOptions", "i18n", "draftWhen"):
        return "{$0\\}"
    if path[-1] in ("enum", "components", "allowedTypes"):
        return '["$0"]'
    plain = (*_FLAGS, "min", "max", "minLength", "maxLength", "default")
    return "$0" if path[-1] in plain else '"$0"'


def setting_keys(view: View, path: KeyPath) -> Words:
    """Return the keys that the mapping at `path` in site.yaml can contain, with descriptions."""
    names = tuple("-" if isinstance(key, int) else key for key in path)
    depth = len(names)
    found: dict[str, str] = {}
    for key in KEYS.values():
        if key.path[:depth] == names and len(key.path) > depth:
            is_leaf = len(key.path) == depth + 1
            found.setdefault(key.path[depth], key.description if is_leaf else "A section of settings.")
    if found:
        return found
    types = {type_.singular: f"The content type {type_.display}." for type_ in view.schema.content_types}
    if depth == 2 and names[0] == "roles":
        return {**types, "upload": "Media files.", "user": "Users.", "auth": "Logins."}
    if names in (("api", "populate"), ("export", "types"), ("preview",), ("urls",)):
        return types
    return next((words for pattern, words in _ENTRIES if _matches(pattern, names)), {})


def _matches(pattern: KeyPath, names: KeyPath) -> bool:
    pairs = zip(pattern, names, strict=False)
    fits = (one == name or (one == "*" and name != "-") for one, name in pairs)
    return len(pattern) == len(names) and all(fits)


def _schema_keys(path: KeyPath) -> Words:
    names: Iterable[str] = ()
    if path == ():
        names = TOP_KEYS
    elif path in (("info",), ("options",)):
        names = INFO_KEYS if path == ("info",) else OPTION_KEYS
    elif path[-2:] == ("pluginOptions", "i18n"):
        names = I18N_KEYS
    elif path[-1] == "pluginOptions":
        names = ("i18n",)
    elif len(path) == 2 and path[0] == "attributes":
        names = ATTRIBUTE_KEYS
    return {name: SCHEMA_KEYS.get(name, "") for name in sorted(names, key=lambda n: n not in SCHEMA_KEYS)}


# --- values ---------------------------------------------------------------------------------------


def _values(file: _ConfigurationFile, cursor: Cursor, insertion: Insertion, before: str) -> Iterator[Json]:
    path = tuple(key for key in cursor.path if isinstance(key, str))
    words = _setting_words(file.view, path) if file.is_settings else _schema_words(file, path)
    taken = {file.value(n.path) for n in file.nodes if n.path[:-1] == cursor.path[:-1] and _is_item(n)}
    for order, (word, sentence) in enumerate(words.items()):
        if word in taken and word != cursor.prefix:
            continue
        new = word if word in ("true", "false") else insertion.quoted(word)
        yield {
            "label": word,
            "kind": _ENUM,
            "documentation": {"kind": "markdown", "value": sentence},
            "sortText": f"{order:04}",
            **insertion.insert_value(new, before),
        }


def _is_item(node: Node) -> bool:
    return isinstance(node.path[-1], int)


def _setting_words(view: View, path: tuple[str, ...]) -> Words:
    if len(path) == 3 and path[0] == "roles":
        return dict.fromkeys(known_actions(path[2]), "")
    if len(path) == 3 and path[:2] == ("check", "rules"):
        return dict.fromkeys(RULE_SEVERITIES, "")
    key = KEYS.get(".".join(path))
    if key is None:
        return {}
    if key.value_type in ("locale", "locales"):
        return dict.fromkeys(view.settings.locales.available, key.description)
    return dict.fromkeys(_SETTING_WORDS.get(key.value_type, ()), key.description)


def _schema_words(file: _ConfigurationFile, path: tuple[str, ...]) -> Words:
    types = file.view.schema.types.values()
    key = path[-1] if path else ""
    if key in _FLAGS:
        return {"true": SCHEMA_KEYS[key], "false": SCHEMA_KEYS[key]}
    if path[:1] == ("attributes",) and len(path) == 3:
        if key == "type":
            return {name: row.description for name, row in ATTRIBUTE_TYPES.items()}
        if key == "relation":
            return dict.fromkeys(sorted(RELATIONS), SCHEMA_KEYS[key])
        if key == "target":
            return {t.uid: t.display for t in types if t.kind != "component"}
        if key in ("component", "components"):
            return {t.uid: t.display for t in types if t.kind == "component"}
        if key in ("inversedBy", "mappedBy"):
            target = file.view.schema.types.get(file.value((*path[:-1], "target")))
            related = target.attributes.values() if target else ()
            return {a.name: "" for a in related if a.type == "relation"}
        if key == "targetField":
            return dict.fromkeys((name for name in file.attributes if name != path[1]), "")
        if key == "allowedTypes":
            return dict.fromkeys(("images", "videos", "audios", "files"), "")
    words: Mapping[tuple[str, ...], Iterable[str]] = {
        ("kind",): ("collectionType", "singleType"),
        ("options", "format"): FORMATS,
        ("options", "frontMatter"): FRONT_MATTER,
        ("options", "body"): file.attributes,
        ("options", "otherKeys"): file.attributes,
    }
    return dict.fromkeys(words.get(path, ()), SCHEMA_KEYS.get(key, ""))


# --- hover and definitions ------------------------------------------------------------------------


def hover_configuration(view: View, path: str, params: Json) -> Json | None:
    """Describe the key or value at a position in site.yaml or a schema.

    Return None if nothing is known about it.
    """
    found = _node_at(view, path, params)
    if found is None:
        return None
    file, node, in_value = found
    names = tuple(key for key in node.path if isinstance(key, str))
    text = ""
    if in_value:
        words = _setting_words(view, names) if file.is_settings else _schema_words(file, names)
        text = words.get(file.value(node.path), "")
    if not text and names:
        last = max(i for i, key in enumerate(node.path) if isinstance(key, str))
        at = node.path[:last]
        known = setting_keys(view, at) if file.is_settings else _schema_keys(names[:-1])
        text = known.get(names[-1], "")
    if not text:
        return None
    span = node.value if in_value and node.value else node.key
    contents = {"kind": "markdown", "value": f"**{'.'.join(names)}**\n\n{text}"}
    return {"contents": contents, "range": file.text.range(span)}


def uid_at(view: View, path: str, params: Json) -> str | None:
    found = _node_at(view, path, params)
    value = found[0].value(found[1].path) if found and found[2] else ""
    return value if value in view.schema.types else None


def _node_at(view: View, path: str, params: Json) -> tuple[_ConfigurationFile, Node, bool] | None:
    text = view.text(path)
    if text is None:
        return None
    file, index = _ConfigurationFile(view, path, text), text.index_of_position(params.get("position"))
    for node in reversed(file.nodes):
        if node.value and node.value[0] <= index <= node.value[1]:
            return file, node, True
        if node.key[0] <= index <= node.key[1]:
            return file, node, False
    return None
