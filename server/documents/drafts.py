"""Which files say that they are drafts, with a key such as Hugo's `draft: true` (`options.draftWhen`)."""

from collections.abc import Mapping

from server.formats.scalars import is_null
from server.formats.tree import Tree
from server.schema.model import DraftKey, Type

# The keys by which generators tell drafts: Hugo, Zola, Astro and Eleventy by the one, Jekyll by the other.
KNOWN: tuple[DraftKey, ...] = (DraftKey("draft", True), DraftKey("published", False))


def is_draft(type_: Type, tree: Mapping[str, Tree]) -> bool:
    """Whether the tree of a file says that it is a draft."""
    return type_.draft_key is not None and says(tree, type_.draft_key)


def says(tree: Mapping[str, Tree], key: DraftKey) -> bool:
    """Whether a tree has the value of a key that stands for a draft, with or without quotes."""
    value = tree.get(key.name)
    return not is_null(value) and str(value).lower() == str(key.value).lower()


def published_value(key: DraftKey) -> bool | None:
    """The value that a published version has under a key instead; None: it has no such key."""
    return not key.value if isinstance(key.value, bool) else None


def unused_key(type_: Type, tree: Mapping[str, Tree]) -> DraftKey | None:
    """The key by which a file says that it is a draft, where its type does not go by it; else None.

    An attribute of that name has a meaning of its own, but for files that a generator reads as well.
    """
    if type_.draft_key is not None:
        return None
    keys = (key for key in KNOWN if type_.files or key.name not in type_.attributes)
    return next((key for key in keys if says(tree, key)), None)
