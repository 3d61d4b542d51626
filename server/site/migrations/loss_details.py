"""Descriptions of values that a migration would lose."""

from collections.abc import Mapping

from server.documents.password_masks import mask_hashes
from server.documents.path_rules import MARKDOWN, Layout
from server.formats.text_positions import KeyPath
from server.formats.tree import SyntaxProblem, Tree, describe_value, is_null
from server.schema.model import Attribute, Schema, Type, title_of
from server.site.configure import Configuration
from server.site.migrations.draft import MAX_SHOWN, Draft, Finding
from server.storage.read import parse


def describe_losses(draft: Draft, before: Configuration) -> list[str]:
    found, layout = draft.losses[:MAX_SHOWN], Layout(before.schema, before.settings)
    lines = zip(draft.describe_findings(found), found, strict=True)
    return [line + _details(draft, before.schema, layout, loss) for line, loss in lines]


def _details(draft: Draft, schema: Schema, layout: Layout, loss: Finding) -> str:
    claim, text = layout.claim(loss.path), draft.original_texts.get(loss.path)
    if claim is None or text is None:
        return ""
    try:
        tree = parse(loss.path, text, claim.type.body if loss.path.endswith(MARKDOWN) else None)
    except SyntaxProblem:
        return ""
    value = _value_at(schema, claim.type, tree, loss.key_path) if loss.key_path else None
    title = tree.get(title_of(claim.type) or "")
    parts = [*([] if is_null(value) else [f"found {_shown(value)}"])]
    if isinstance(title, str) and loss.key_path != (title_of(claim.type),):
        parts.append(f"in {_shown(title)}" if loss.key_path else _shown(title))
    return f" ({', '.join(parts)})" if parts else ""


def _value_at(schema: Schema, type_: Type, tree: Mapping[str, Tree], key_path: KeyPath) -> Tree:
    value: Tree = dict(tree)
    attribute: Attribute | None = None
    for key in key_path:
        if isinstance(value, list) and isinstance(key, int):
            value = value[key]
            continue
        if not isinstance(value, dict):
            return None
        if attribute is not None:
            type_ = schema.types[str(attribute.component or value.get("__component"))]
        attribute, value = type_.attributes.get(str(key)), value.get(key)
        if attribute is None:
            return None
    return None if attribute is None or attribute.type == "password" else value


def _shown(value: Tree) -> str:
    return describe_value(mask_hashes(" ".join(value.split()) if isinstance(value, str) else value))
