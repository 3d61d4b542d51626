"""Templates for new documents, and the command that creates a document."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from server.documents.path_rules import ENDINGS, MARKDOWN, PathClaim
from server.errors import ValidationError
from server.formats.json import json_text
from server.lsp.positions import uri_of
from server.lsp.protocol import Json
from server.lsp.view import View
from server.schema.model import Attribute, Type
from server.schema.spelling import suggestion
from server.storage.files import is_ignored

NEW_DOCUMENT = "bifolio.newDocument"
_MAX_NAME_BYTES = 255  # the limit in most file systems
_FORMATS: Mapping[str, str] = {"md": ".md", "json": ".json", "yaml": ".yaml", "toml": ".toml"}


def new_document_text(view: View, path: str, claim: PathClaim) -> str:
    """Return the text of a new document, with the default values of its attributes."""
    type_ = claim.type
    is_markdown = path.endswith(MARKDOWN)
    body = type_.body if is_markdown else None
    values = {
        name: _first_value(type_, attribute, claim)
        for name, attribute in type_.attributes.items()
        if not attribute.derived and name != body and (attribute.required or not attribute.holds_components)
    }
    if path.endswith(".json"):
        return json_text(values, indent="  ") + "\n"
    toml = path.endswith(".toml") or (is_markdown and type_.front_matter == "toml")
    lines = "".join(f"{line}\n" for line in (_toml(values) if toml else _yaml(values)))
    fence = ("+++" if toml else "---") + "\n"
    return f"{fence}{lines}{fence}\n" if is_markdown else lines


def _first_value(type_: Type, attribute: Attribute, claim: PathClaim) -> Any:
    if attribute.has_default:
        return attribute.default
    if attribute.type == "uid":
        return claim.name.rpartition("/")[2]
    if attribute.type == "date" and attribute.required:
        return date.today().isoformat()
    if attribute.type == "boolean":
        return False if attribute.required else None
    return [] if attribute.to_many else None


def _yaml(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield f"{name}:" if value is None else f"{name}: {_plain(value)}"


def _toml(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield f'{name} = ""' if value is None else f"{name} = {json_text(value)}"


def _plain(value: Any) -> str:
    simple = isinstance(value, str) and value.replace("-", "").replace("_", "").isalnum()
    return str(value) if simple and not str(value).isdigit() else json_text(value)


# --- command --------------------------------------------------------------------------------------


def _existing_path(view: View, path: str) -> str:
    stem = path.rpartition(".")[0]
    paths = dict.fromkeys((path, *(f"{stem}{ending}" for ending in ENDINGS)))
    return next((one for one in paths if one in view.texts or (view.root / one).exists()), "")


def new_document(view: View, arguments: Json) -> tuple[Json, str]:
    """Return the edit that creates a document, and the URI of its file.

    `arguments` contains `type` and `name`, and can contain `locale`. Raises ValidationError if they are
    invalid or if the document already exists.
    """
    type_name, name = str(arguments.get("type", "")), str(arguments.get("name", "")).strip("/")
    types = {type_.singular: type_ for type_ in view.schema.content_types}
    type_ = types.get(type_name)
    if type_ is None:
        hint = suggestion(type_name, types) or "use one of " + ", ".join(types)
        raise ValidationError(f'"{type_name}" is not a content type; {hint}')
    locale = str(arguments.get("locale") or view.settings.locales.default)
    if locale not in view.settings.locales.available:
        raise ValidationError(f'"{locale}" is not a locale of the site')
    if type_.kind == "singleType":
        name = type_.singular
    if not name or any(not part or is_ignored(part) or part == ".." for part in name.split("/")):
        raise ValidationError("the name of the new document is missing or not valid")
    if "\\" in name or not name.isprintable():
        raise ValidationError("the name of the new document contains a backslash or a control character")
    claim = PathClaim(type_, name, locale, False)
    path = view.layout.path_of(claim, _FORMATS[type_.format])
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in path.split("/")):
        raise ValidationError(f"the file name has more than {_MAX_NAME_BYTES} bytes; use a shorter name")
    if view.layout.claim(path) is None:
        raise ValidationError(f"{path} would not be a document of the type {type_name}")
    if taken := _existing_path(view, path):
        raise ValidationError(f"{taken} already exists")
    uri = uri_of(view.root / path)
    start = {"line": 0, "character": 0}
    text = {"range": {"start": start, "end": start}, "newText": new_document_text(view, path, claim)}
    edits = {"textDocument": {"uri": uri, "version": None}, "edits": [text]}
    return {"documentChanges": [{"kind": "create", "uri": uri}, edits]}, uri
