"""Content types and components of a site, for the generators of requests."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Attribute = Mapping[str, Any]  # in the form of a schema.json file
Attributes = Mapping[str, Attribute]

TEXT = ("string", "text", "richtext", "enumeration", "email", "uid")
NUMBERS = ("integer", "biginteger", "float", "decimal")
MOMENTS = ("date", "time", "datetime", "timestamp")
SCALARS = (*TEXT, *NUMBERS, *MOMENTS, "boolean", "json", "blocks")
COMPOUND = ("relation", "media", "component", "dynamiczone")
TO_MANY = ("oneToMany", "manyToMany", "morphToMany", "morphMany")
LOCALES = ("en", "fr", "de")  # The first locale is the default locale.
FILE = "plugin::upload.file"


@dataclass(frozen=True, slots=True)
class Type:
    """A content type."""

    uid: str
    singular: str
    plural: str
    single: bool
    drafts: bool
    localized: bool
    attributes: Attributes

    @property
    def path(self) -> str:
        return f"/api/{self.singular if self.single else self.plural}"

    @property
    def statuses(self) -> tuple[str, ...]:
        return ("published", "draft") if self.drafts else ("published",)

    @property
    def locales(self) -> tuple[str, ...]:
        return LOCALES if self.localized else LOCALES[:1]


@dataclass(frozen=True, slots=True)
class Model:
    """All content types of a site by uid, and all its components."""

    types: Mapping[str, Type]
    components: Mapping[str, Attributes]

    @property
    def collections(self) -> list[Type]:
        return [type_ for type_ in self.types.values() if not type_.single]

    def inside(self, attribute: Attribute) -> Attributes | None:
        """Return the attributes of the documents, files or components in an attribute, or None if they are
        unknown.
        """
        match attribute["type"]:
            case "relation":
                target = self.types.get(str(attribute.get("target")))
                return {**OWN, **target.attributes} if target else None
            case "media":
                return MEDIA
            case "component":
                return self.components[attribute["component"]]
        return None


def read_model(folder: Path) -> Model:
    types = [_type(json.loads(path.read_bytes())) for path in sorted(folder.glob("*.json"))]
    components = {
        f"{path.parent.name}.{path.stem}": json.loads(path.read_bytes())["attributes"]
        for path in sorted((folder / "components").glob("*/*.json"))
    }
    return Model({type_.uid: type_ for type_ in types}, components)


def _type(schema: Mapping[str, Any]) -> Type:
    name = schema["info"]["singularName"]
    return Type(
        uid=f"api::{name}.{name}",
        singular=name,
        plural=schema["info"]["pluralName"],
        single=schema.get("kind") == "singleType",
        drafts=schema.get("options", {}).get("draftAndPublish", False),
        localized=schema.get("pluginOptions", {}).get("i18n", {}).get("localized", False),
        attributes=schema["attributes"],
    )


def to_many(attribute: Attribute) -> bool:
    many = attribute.get("relation") in TO_MANY or attribute["type"] == "dynamiczone"
    return bool(many or attribute.get("repeatable") or attribute.get("multiple"))


def hidden(attribute: Attribute) -> bool:
    return bool(attribute["type"] == "password" or attribute.get("private"))


def shared(type_: Type, attribute: Attribute) -> bool:
    own = attribute.get("pluginOptions", {}).get("i18n", {}).get("localized") is True
    return type_.localized and not own and attribute["type"] not in ("relation", "uid")


def scalars(attributes: Attributes) -> list[str]:
    return [n for n, found in attributes.items() if found["type"] in SCALARS and not hidden(found)]


def compounds(attributes: Attributes) -> list[str]:
    return [n for n, found in attributes.items() if found["type"] in COMPOUND and not hidden(found)]


# attributes that every document has
OWN: Attributes = {
    "documentId": {"type": "string"},
    "createdAt": {"type": "datetime"},
    "updatedAt": {"type": "datetime"},
    "publishedAt": {"type": "datetime"},
}
MEDIA: Attributes = {
    **OWN,
    "name": {"type": "string"},
    "alternativeText": {"type": "text"},
    "caption": {"type": "text"},
    "width": {"type": "integer"},
    "height": {"type": "integer"},
    "ext": {"type": "string"},
    "mime": {"type": "string"},
}
