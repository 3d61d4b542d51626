"""The keys of a file that are no attributes, as the value of one json attribute (`options.otherKeys`)."""

from collections.abc import Collection, Mapping
from typing import Any

from server.formats.edits import REMOVE, same
from server.formats.tree import Tree
from server.schema.model import FILE_FIELDS, Type


def gather(type_: Type, tree: Mapping[str, Tree]) -> dict[str, Tree]:
    """What a file says, by attribute: its other keys are one mapping, where the type has a place for it."""
    if type_.other_keys is None:
        return dict(tree)
    taken = taken_keys(type_)
    gathered = {key: value for key, value in tree.items() if key in taken}
    others = {key: value for key, value in tree.items() if key not in taken}
    return {**gathered, type_.other_keys: others} if others else gathered


def spread(type_: Type, trees: Mapping[str, Any], tree: Mapping[str, Tree] | None = None) -> dict[str, Any]:
    """What a file is to say, by key: the inverse of `gather`. `tree` is what the file says now, gathered.

    A key that is no longer in the mapping is REMOVE, and one that stays as it is is left out.
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


def taken_keys(type_: Type) -> Collection[str]:
    """The keys of a file that have a meaning of their own, and so can't be in that mapping."""
    marks = {type_.draft_key.name} if type_.draft_key else set()
    return {*FILE_FIELDS, *marks, *(name for name in type_.attributes if name != type_.other_keys)}
