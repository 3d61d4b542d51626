"""Check for documents that become invalid when the definition of an attribute becomes stricter."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

from server.documents.constraints import Limits, option_errors
from server.documents.readers import READERS, InvalidValue
from server.formats.tree import Tree, is_null
from server.schema.model import Attribute
from server.site.configure import Configuration
from server.site.migrations.draft import MAX_SHOWN, AttributeMapping, Draft, Finding
from server.site.migrations.edits import Edits


def describe_invalid_values(
    draft: Draft, before: Configuration, after: Configuration, uid: str, name: str
) -> list[str]:
    """Return a line of text for each document that becomes invalid.

    At most MAX_SHOWN documents are listed. If there are more, the last line says how many.
    """
    attribute = after.schema.types[uid].attributes[name]
    found: list[Finding] = []
    seen: Counter[Hashable] = Counter()

    def check(mapping: AttributeMapping) -> Edits:
        at = (*mapping.key_path, name)
        for message in _errors(mapping):
            found.append(Finding(mapping.path, at if name in mapping.values else (), f'"{name}" {message}'))
        return Edits()

    def _errors(mapping: AttributeMapping) -> list[str]:
        tree, limits = mapping.values.get(name), Limits(is_draft=mapping.claim.draft)
        if is_null(tree):
            return option_errors(attribute, None, limits)
        if attribute.type == "dynamiczone":
            return _unknown_components(tree, attribute)
        if attribute.type not in READERS:
            return []
        try:
            value: Any = READERS[attribute.type](tree, attribute)
        except InvalidValue as error:
            return [f"must be {error.expected}"]
        wrong = option_errors(attribute, value, limits)
        if (
            attribute.unique
            and not mapping.key_path
            and not mapping.claim.draft
            and isinstance(value, Hashable)
        ):
            key = (mapping.claim.locale, value)
            seen[key] += 1
            wrong += ["is not unique"] if seen[key] > 1 else []
        return wrong

    # Files that can't be parsed are not part of this change, so they don't prevent it.
    probe = draft.probe()
    keywords = () if attribute.required else (name,)
    probe.edit_documents(before, after, uid, check, keywords)
    return _lines(probe, found)


def describe_differing_values(draft: Draft, before: Configuration, uid: str, name: str) -> list[str]:
    """Return a line of text for each document in which the attribute differs between locales."""
    found: list[Finding] = []
    first: dict[tuple[str, bool], tuple[str, Tree]] = {}

    def check(mapping: AttributeMapping) -> Edits:
        value = mapping.values.get(name)
        path, other = first.setdefault((mapping.claim.name, mapping.claim.draft), (mapping.path, value))
        if value != other:
            at = (name,) if name in mapping.values else ()
            found.append(Finding(mapping.path, at, f'"{name}" differs from the value in {path}'))
        return Edits()

    probe = draft.probe()
    probe.edit_documents(before, before, uid, check, ())
    return _lines(probe, found)


def _unknown_components(tree: Tree, attribute: Attribute) -> list[str]:
    items = tree if isinstance(tree, list) else []
    uids = {str(item["__component"]) for item in items if isinstance(item, dict) and "__component" in item}
    return [f"can't contain {uid}" for uid in sorted(uids - set(attribute.components))]


def _lines(draft: Draft, found: list[Finding]) -> list[str]:
    lines = list(draft.describe_findings(found[:MAX_SHOWN]))
    return lines + ([f"… and {len(found) - MAX_SHOWN:,} more"] if len(found) > MAX_SHOWN else [])
