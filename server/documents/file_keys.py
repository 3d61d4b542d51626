"""Mapping between attributes and the keys in a file, for content types with at least one of these options:

- `options.otherKeys`: a json attribute contains all keys that are not attributes.
- `options.fileName`: the file name contains values. For example, the pattern `{date}-{slug}` matches
  `2024-01-31-hello`. Folders in the pattern, such as `{date.year}/{date.month}/`, are used only for the paths
  of new files.
- `options.draftWhen`: a key in the file marks drafts.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from server.documents.timestamps import read_date
from server.formats.edits import REMOVE, same
from server.formats.tree import Plain, Tree, is_null
from server.schema.model import DATE_PARTS, DATE_TYPES, FILE_FIELDS, DraftKey, Type

FIELD = re.compile(r"\{(.*?)\}")


def gather(type_: Type, tree: Mapping[str, Tree]) -> dict[str, Tree]:
    """Return the values in a file by attribute. If the content type has the option `otherKeys`, the keys that
    are not attributes are collected in the json attribute that this option names.
    """
    if type_.other_keys is None:
        return dict(tree)
    taken = reserved_keys(type_)
    gathered = {key: value for key, value in tree.items() if key in taken}
    others = {key: value for key, value in tree.items() if key not in taken}
    return {**gathered, type_.other_keys: others} if others else gathered


def spread(type_: Type, trees: Mapping[str, Any], tree: Mapping[str, Tree] | None = None) -> dict[str, Any]:
    """Convert values by attribute to the values that are written to a file, by key. This is the inverse of
    `gather`.

    `trees` contains the values by attribute. `tree` is the file's current content, as returned by `gather`.
    If a key was removed from the `otherKeys` attribute, its value in the result is REMOVE. If a key in that
    attribute is unchanged, it is omitted from the result.
    """
    name = type_.other_keys
    if name is None or name not in trees:
        return dict(trees)
    old = (tree or {}).get(name)
    before: Mapping[str, Tree] = old if isinstance(old, dict) else {}
    after: Mapping[str, Any] = trees[name] if isinstance(trees[name], dict) else {}
    others = {key: trees[key] for key in trees if key != name}
    removed = {key: REMOVE for key in before if key not in after}
    changed = {k: v for k, v in after.items() if k not in before or not same(before[k], v)}
    return {**others, **removed, **changed}


def reserved_keys(type_: Type) -> Collection[str]:
    """Return the keys that the `otherKeys` attribute never contains: the names of attributes, and keys with a
    special meaning.
    """
    marks = {type_.draft_key.name} if type_.draft_key else set()
    return {*FILE_FIELDS, *marks, *(name for name in type_.attributes if name != type_.other_keys)}


def with_name(type_: Type, name: str, tree: Mapping[str, Tree]) -> Mapping[str, Tree]:
    """Add the values in a file's name to the values in the file. If both contain a value for an attribute,
    the value in the file is used.
    """
    if type_.file_name is None:
        return tree
    pattern = type_.file_name.rpartition("/")[2]
    dates = frozenset(n for n in FIELD.findall(pattern) if type_.attributes[n].type in DATE_TYPES)
    found = read_name(pattern, dates, name.rpartition("/")[2])
    missing = {key: value for key, value in found.items() if is_null(tree.get(key))}
    return {**tree, **missing} if missing else tree


def name_of(type_: Type, values: Mapping[str, Any]) -> str | None:
    """Return the file name for a new document. Return None if a value that the file name must contain is
    missing.
    """
    fields = FIELD.findall(type_.file_name or "")
    names = {field.partition(".")[0] for field in fields}
    if not names or not all(isinstance(values.get(name), str | int) for name in names):
        return None
    texts = {
        n: str(values[n])[:10] if type_.attributes[n].type in DATE_TYPES else str(values[n]) for n in names
    }
    for field in fields:
        name, _, part = field.partition(".")
        texts[field] = texts[name][DATE_PARTS[part]] if part else texts[name]
    return FIELD.sub(lambda found: texts[found[1]], str(type_.file_name))


def read_name(pattern: str, dates: frozenset[str], name: str) -> dict[str, Tree]:
    """Return the values in a file name by attribute. If the name does not match the pattern, return {}.

    The values of the attributes in `dates` must be valid dates.
    """
    found = _compile(pattern, dates).fullmatch(name)
    if found is None:
        return {}
    try:
        for date in dates:
            read_date(found[date])
    except ValueError:  # The date does not exist.
        return {}
    return {key: Plain(text) for key, text in found.groupdict().items()}


# Saves 2.9 of 163 µs per document at a cold start, if file names contain values.
@cache
def _compile(pattern: str, dates: frozenset[str]) -> re.Pattern[str]:
    """Compile a file name pattern into a regular expression with a named group for each field."""
    texts = FIELD.split(pattern)  # alternates between literal text and field names
    parts = [re.escape(text) for text in texts]
    parts[1::2] = [rf"(?P<{n}>{'[0-9]{4}-[0-9]{2}-[0-9]{2}' if n in dates else '.+?'})" for n in texts[1::2]]
    return re.compile("".join(parts))


# --- drafts ---------------------------------------------------------------------------------------

# Keys that mark drafts: the first in Hugo, Zola, Astro and Eleventy, the second in Jekyll.
DRAFT_KEYS: tuple[DraftKey, ...] = (DraftKey("draft", True), DraftKey("published", False))


def is_draft(type_: Type, tree: Mapping[str, Tree]) -> bool:
    """Return whether a file is a draft, according to its content type's draft key."""
    return type_.draft_key is not None and says(tree, type_.draft_key)


def says(tree: Mapping[str, Tree], key: DraftKey) -> bool:
    """Return whether the key in a file has the value that marks a draft. The value may be quoted."""
    value = tree.get(key.name)
    return not is_null(value) and str(value).lower() == str(key.value).lower()


def draft_mark(type_: Type) -> dict[str, Tree]:
    """Return a mapping with the key and value that mark drafts of a content type. Without
    `options.draftWhen`, return {}.
    """
    return {type_.draft_key.name: type_.draft_key.value} if type_.draft_key else {}


def published_value(key: DraftKey) -> bool | None:
    """Return the value of the draft key in a published version. Return None if the published version must not
    contain the key.
    """
    return not key.value if isinstance(key.value, bool) else None


def unused_key(type_: Type, tree: Mapping[str, Tree]) -> DraftKey | None:
    """Return a key that seems to mark the file as a draft, although the content type has no draft key. Return
    None if the file contains no such key.

    A key that is also the name of an attribute is normally ignored. But if the content type has
    `options.files`, the key is returned, because a site generator that reads the same files would treat them
    as drafts.
    """
    if type_.draft_key is not None:
        return None
    keys = (key for key in DRAFT_KEYS if type_.files or key.name not in type_.attributes)
    return next((key for key in keys if says(tree, key)), None)
