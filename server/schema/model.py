"""Immutable content types, components and attributes."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal
from urllib.parse import quote

from server.problems import Severity

UPLOAD = "plugin::upload.file"
USER = "plugin::users-permissions.user"
ROLE = "plugin::users-permissions.role"
ACCOUNT_UIDS = frozenset({USER, ROLE})  # types that are stored in the accounts database, not in files

Kind = Literal["collectionType", "singleType", "component"]


@dataclass(frozen=True, slots=True)
class AttributeType:
    """A type that attributes can have, such as `string`, and the group it belongs to (spec.md 2.3)."""

    name: str
    group: Literal["string", "date", "number", "generic", "relation", "media", "component", "dynamiczone"]
    description: str
    text: bool = False


DEPRECATED = "true"  # marks a deprecated attribute that has no replacement
CUSTOM_FIELD = "customField"  # the type of attributes that Strapi plugins define

ATTRIBUTE_TYPES: Mapping[str, AttributeType] = {
    row.name: row
    for row in (
        AttributeType("string", "string", "a line of text", text=True),
        AttributeType("text", "string", "text of several lines", text=True),
        AttributeType("richtext", "string", "Markdown; the body of a Markdown file", text=True),
        AttributeType("blocks", "generic", "rich text as a list of blocks"),
        AttributeType("enumeration", "string", "one of the values in `enum`", text=True),
        AttributeType("email", "string", "an e-mail address", text=True),
        AttributeType("password", "string", "a secret that no response contains and no query can search"),
        AttributeType("uid", "string", "a unique part of a URL", text=True),
        AttributeType("date", "date", "a day, 2024-02-29"),
        AttributeType("time", "date", "a time of day, 10:20:30.000"),
        AttributeType("datetime", "date", "a date and time, 2024-02-29T10:20:30.000Z"),
        AttributeType("timestamp", "date", "same as datetime"),
        AttributeType("integer", "number", "a whole number"),
        AttributeType("biginteger", "number", "a whole number of any size; in JSON, a string"),
        AttributeType("float", "number", "a number"),
        AttributeType("decimal", "number", "an exact decimal number"),
        AttributeType("boolean", "generic", "true or false"),
        AttributeType("array", "generic", "a list of any JSON values"),
        AttributeType("json", "generic", "any JSON value"),
        AttributeType("relation", "relation", "one or many other documents"),
        AttributeType("media", "media", "one or many files from content/uploads"),
        AttributeType("component", "component", "a group of attributes, or a list of such groups"),
        AttributeType("dynamiczone", "dynamiczone", "a list of different components"),
    )
}

TO_MANY = frozenset({"oneToMany", "manyToMany", "morphToMany", "morphMany"})
POLYMORPHIC = frozenset({"morphToOne", "morphToMany"})
MORPH = POLYMORPHIC | {"morphOne", "morphMany"}
INVERSE_RELATIONS: Mapping[str, str] = {
    "oneToOne": "oneToOne",
    "oneToMany": "manyToOne",
    "manyToOne": "oneToMany",
    "manyToMany": "manyToMany",
}
RELATIONS = frozenset(INVERSE_RELATIONS) | MORPH


@dataclass(frozen=True, slots=True)
class Attribute:
    """Attribute of a content type or component, with its options."""

    name: str
    type: str
    required: bool = False
    unique: bool = False
    private: bool = False
    localized: bool = True
    default: Any = None
    min: Any = None
    max: Any = None
    min_length: int | None = None
    max_length: int | None = None
    regex: str | None = None
    enum: tuple[str, ...] = ()
    target_field: str | None = None
    relation: str | None = None
    target: str | None = None
    inversed_by: str | None = None
    mapped_by: str | None = None
    component: str | None = None
    components: tuple[str, ...] = ()
    repeatable: bool = False
    multiple: bool = False
    allowed_types: tuple[str, ...] = ()
    deprecated: str = ""  # what to use instead, or DEPRECATED

    @property
    def group(self) -> str:
        return ATTRIBUTE_TYPES[self.type].group

    @property
    def scalar(self) -> bool:
        return self.group in ("string", "date", "number", "generic")

    @property
    def holds_components(self) -> bool:
        return self.type in ("component", "dynamiczone")

    @property
    def component_uids(self) -> tuple[str, ...]:
        return (*((self.component,) if self.component else ()), *self.components)

    @property
    def has_targets(self) -> bool:
        return self.type in ("relation", "media")

    @property
    def visible(self) -> bool:
        """True if responses and queries can contain this attribute."""
        return not self.private and self.type != "password"

    @property
    def selectable(self) -> bool:
        return self.scalar and self.visible

    @property
    def populatable(self) -> bool:
        return not self.scalar and self.visible

    @property
    def queryable(self) -> bool:
        # Dynamic zones are excluded, because their components need not have any attributes in common.
        return self.visible and self.type != "dynamiczone"

    @property
    def has_default(self) -> bool:
        return self.default is not None and self.scalar

    @property
    def derived(self) -> bool:
        """True if this relation is not stored, but computed from its other side."""
        return self.mapped_by is not None

    @property
    def morph(self) -> bool:
        """True if the targets of this relation can have different content types."""
        return self.relation in MORPH

    @property
    def polymorphic(self) -> bool:
        """True if this is the stored side of a morph relation, where each target is stored with its type."""
        return self.relation in POLYMORPHIC

    @property
    def to_many(self) -> bool:
        return self.relation in TO_MANY or self.multiple or self.repeatable or self.type == "dynamiczone"


_LEADING_FIELDS = (Attribute("id", "integer"), Attribute("documentId", "string"))
_TRAILING_FIELDS = (
    Attribute("createdAt", "datetime"),
    Attribute("updatedAt", "datetime"),
    Attribute("publishedAt", "datetime"),
    Attribute("locale", "string"),
)
# System fields of every document. FILE_FIELDS can occur in files; RESERVED_FIELDS can't be attributes.
STANDARD_FIELDS = tuple(attribute.name for attribute in (*_LEADING_FIELDS, *_TRAILING_FIELDS))
# attributes of these types can get their values from dates in file names
DATE_TYPES = frozenset({"date", "datetime"})
# parts of a date that can be folder names, and their positions in `2024-01-31`
DATE_PARTS: Mapping[str, slice] = {"year": slice(0, 4), "month": slice(5, 7), "day": slice(8, 10)}
FILE_FIELDS = tuple(name for name in STANDARD_FIELDS if name != "id")
RESERVED_FIELDS = (*STANDARD_FIELDS, "localizations", "status")


@dataclass(frozen=True, slots=True)
class ContentRule:
    """Content rule for `bifolio check`, from `options.rules` in a schema.

    `path` leads to an attribute, such as `("seo", "metaTitle")`. The attribute's values must satisfy the
    options of `limits`, such as `max_length`.
    """

    path: tuple[str, ...]
    limits: Attribute
    severity: Severity = "warning"
    message: str = ""


@dataclass(frozen=True, slots=True)
class DraftKey:
    """Key and value that mark a file as a draft."""

    name: str
    value: bool | str


@dataclass(frozen=True, eq=False)
class Type:
    """Content type or component. Values are stored in rows, in the order of `columns` (spec.md 2.2)."""

    uid: str
    kind: Kind
    singular: str
    plural: str
    display: str
    attributes: Mapping[str, Attribute]
    draft_publish: bool = False
    localized: bool = False
    files: tuple[str, ...] = ()
    format: str = "md"
    front_matter: str = "yaml"
    draft_key: DraftKey | None = None
    file_name: str | None = None
    body: str | None = None
    # name of the JSON attribute that collects all keys in a file that the schema doesn't define
    other_keys: str | None = None
    rules: tuple[ContentRule, ...] = ()
    path: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def columns(self) -> Mapping[str, Attribute]:
        """Attributes and system fields, in the order of the values in a row."""
        if self.kind == "component":
            ordered = (_LEADING_FIELDS[0], *self.attributes.values())
        else:
            ordered = (*_LEADING_FIELDS, *self.attributes.values(), *_TRAILING_FIELDS)
        return {attribute.name: attribute for attribute in ordered}

    @cached_property
    def position(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.columns)}

    @cached_property
    def default_fields(self) -> tuple[str, ...]:
        """Names of the fields that a response contains by default, except ids."""
        ids = ("id", "documentId")
        return tuple(name for name, a in self.columns.items() if a.selectable and name not in ids)

    @cached_property
    def populatable(self) -> tuple[str, ...]:
        """Names that can be populated, in the order in which `populate=*` populates them."""
        names = tuple(name for name, a in self.attributes.items() if a.populatable)
        return (*names, "localizations") if self.localized else names

    @cached_property
    def numbered(self) -> tuple[tuple[int, Attribute], ...]:
        # The positions count only the attributes, not the system fields in `columns`.
        return tuple(enumerate(self.attributes.values()))

    @cached_property
    def checked(self) -> tuple[tuple[int, Attribute], ...]:
        """Attributes whose values must be checked, each with its position in `attributes`."""
        return tuple((i, a) for i, a in enumerate(self.attributes.values()) if _has_options(a))


def _has_options(a: Attribute) -> bool:
    bounds = (a.min, a.max, a.min_length, a.max_length, a.regex)
    return (
        a.required
        or a.type in ("email", "uid", "component", "dynamiczone")
        or any(bound is not None for bound in bounds)
    )


@dataclass(frozen=True, eq=False)
class Schema:
    """Content types and components by uid, such as `api::article.article` or `shared.seo`."""

    types: Mapping[str, Type]

    @cached_property
    def content_types(self) -> tuple[Type, ...]:
        """Content types that have endpoints, sorted by singular API id."""
        found = (t for t in self.types.values() if t.kind != "component" and t.uid.startswith("api::"))
        return tuple(sorted(found, key=lambda t: t.singular))

    @cached_property
    def endpoints(self) -> Mapping[str, Type]:
        """Content types by their names in URLs, such as NAME in `/api/NAME`."""
        return {t.plural if t.kind == "collectionType" else t.singular: t for t in self.content_types}

    @cached_property
    def subjects(self) -> Mapping[str, Type]:
        """Content types by their names in permissions."""
        return {t.singular: t for t in self.content_types}

    @cached_property
    def has_user_relations(self) -> bool:
        relations = (
            a
            for t in self.types.values()
            for a in t.attributes.values()
            if t.uid not in ACCOUNT_UIDS and a.type == "relation"
        )
        return any(a.target in ACCOUNT_UIDS or (a.morph and not a.derived) for a in relations)

    @cached_property
    def reference_attributes(self) -> Mapping[str, tuple[tuple[int, Attribute], ...]]:
        """For each type's uid, the attributes that refer to documents or media files.

        They include attributes whose components contain such references. Each attribute is paired with its
        position in `attributes`.
        """
        found = self._types_with(lambda attribute: attribute.has_targets)
        return {
            uid: tuple(
                (i, a) for i, a in enumerate(t.attributes.values()) if a.has_targets or _holds(a, found)
            )
            for uid, t in self.types.items()
        }

    @cached_property
    def types_with_blocks(self) -> Set[str]:
        return self._types_with(lambda attribute: attribute.type == "blocks")

    @cached_property
    def types_with_deprecated(self) -> Set[str]:
        return self._types_with(lambda attribute: bool(attribute.deprecated))

    @cached_property
    def prose_attributes(self) -> Mapping[str, tuple[str, ...]]:
        """For each type's uid, the names of the attributes that contain Markdown or `blocks`.

        They include attributes whose components contain such text.
        """

        def is_prose(attribute: Attribute) -> bool:
            return attribute.type in ("richtext", "blocks")

        found = self._types_with(is_prose)
        return {
            uid: tuple(a.name for a in t.attributes.values() if is_prose(a) or _holds(a, found))
            for uid, t in self.types.items()
        }

    def _types_with(self, meets: Callable[[Attribute], bool]) -> Set[str]:
        found: set[str] = set()
        size = -1
        while size < len(found):
            size = len(found)
            found |= {
                uid
                for uid, type_ in self.types.items()
                if any(meets(a) or _holds(a, found) for a in type_.attributes.values())
            }
        return found


def _holds(attribute: Attribute, uids: Collection[str]) -> bool:
    return any(uid in uids for uid in attribute.component_uids)


def _plugin(uid: str, singular: str, plural: str, scalars: Mapping[str, str], *others: Attribute) -> Type:
    made = {name: Attribute(name, kind) for name, kind in scalars.items()}
    made.update({attribute.name: attribute for attribute in others})
    return Type(uid, "collectionType", singular, plural, plural.title(), made)


# used as `mapped_by` of the media files' attribute `related`, which is the inverse side of all media
# attributes
ANY_MEDIA = "*"
# Attribute of media files: an image's placeholder and main color. If `media.placeholders` is set, responses
# contain them as fields of their own.
PLACEHOLDER = "preview"

# Types without schema files. Media files can be populated and filtered like documents. Users are indexed
# without their passwords and other secrets (index.user_index).
BUILT_IN: Mapping[str, Type] = {
    UPLOAD: _plugin(
        UPLOAD,
        "file",
        "files",
        {
            "name": "string",
            "alternativeText": "text",
            "caption": "text",
            "focalPoint": "json",
            "width": "integer",
            "height": "integer",
            "formats": "json",
            "hash": "string",
            "ext": "string",
            "mime": "string",
            "size": "float",
            "url": "text",
            "previewUrl": "text",
            "provider": "string",
            "provider_metadata": "json",
        },
        Attribute("related", "relation", relation="morphToMany", mapped_by=ANY_MEDIA),
        Attribute(PLACEHOLDER, "json", private=True),
    ),
    USER: _plugin(
        USER,
        "user",
        "users",
        {
            "username": "string",
            "email": "email",
            "provider": "string",
            "confirmed": "boolean",
            "blocked": "boolean",
        },
        Attribute("password", "password", private=True),
        Attribute("resetPasswordToken", "string", private=True),
        Attribute("confirmationToken", "string", private=True),
        Attribute("role", "relation", relation="manyToOne", target=ROLE),
    ),
    ROLE: _plugin(ROLE, "role", "roles", {"name": "string", "description": "string", "type": "string"}),
}


# --- naming ---------------------------------------------------------------------------------------

_BUILT_IN = {UPLOAD: "UploadFile", USER: "UsersPermissionsUser", ROLE: "UsersPermissionsRole"}
_WORD = re.compile(r"[A-Za-z0-9]+")

_TITLE_NAMES = ("title", "name", "headline", "heading", "label")


# The cache saves 0.15 of the 0.74 ms that `GET /overview` takes.
@lru_cache(maxsize=1000)
def title_of(type_: Type) -> str | None:
    shown = {name: a for name, a in type_.attributes.items() if a.visible and a.type in ("string", "text")}
    targets = (a.target_field for a in type_.attributes.values() if a.type == "uid" and a.target_field)
    return next((name for name in (*targets, *_TITLE_NAMES, *shown) if name in shown), None)


def content_of(type_: Type) -> str | None:
    if type_.body and type_.attributes[type_.body].visible:
        return type_.body
    long = (name for name, a in type_.attributes.items() if a.visible and a.type in ("richtext", "blocks"))
    return next(long, None)


def key_of(type_: Type) -> str:
    """Return a type's name in requests, such as `article` or `shared.seo`."""
    return type_.uid if type_.kind == "component" or type_.uid in BUILT_IN else type_.singular


def type_names(schema: Schema, reserved: Iterable[str], suffixes: Iterable[str]) -> dict[str, str]:
    """Map the uid of each type to a unique name for generated code, such as `Article`.

    No name is in `reserved`, either by itself or followed by one of the `suffixes`.
    """
    suffixes = ("", *suffixes)
    used = {*reserved, *(name + suffix for name in _BUILT_IN.values() for suffix in suffixes)}
    names = dict(_BUILT_IN)
    for type_ in sorted(schema.types.values(), key=lambda t: (t.kind == "component", t.uid)):
        if type_.uid not in names:
            names[type_.uid] = _free(_pascal(key_of(type_)), used, suffixes)
            used.update(names[type_.uid] + suffix for suffix in suffixes)
    return names


def _pascal(text: str) -> str:
    words = "".join(word[0].upper() + word[1:] for word in _WORD.findall(text))
    return words if words[:1].isalpha() else f"Type{words}"


def _free(name: str, used: set[str], suffixes: tuple[str, ...]) -> str:
    candidates = (name, f"{name}Type", *(f"{name}Type{i}" for i in range(2, 1000)))
    return next(c for c in candidates if not any(c + suffix in used for suffix in suffixes))


# --- cache tags -----------------------------------------------------------------------------------

SITE_TAG = "_site"  # tag of every response; API ids never begin with an underscore
MAX_HEADER_BYTES = 4096  # proxies reject responses with much larger headers


def type_tag(uid: str) -> str:
    return "upload" if uid == UPLOAD else uid.rpartition(".")[2]


def document_tag(uid: str, document_id: str) -> str:
    return f"{type_tag(uid)}:{quote(document_id, safe='')}"


def header_value(tags: Iterable[str]) -> str:
    """Return the value of the header with the cache tags, which always include SITE_TAG.

    If it would be too long, the tags of documents are replaced with those of their content types.
    """
    known = {*tags, SITE_TAG}
    value = _join_tags({tag for tag in known if ":" not in tag or _type_of(tag) not in known})
    return value if len(value) <= MAX_HEADER_BYTES else _join_tags({_type_of(tag) for tag in known})


def _type_of(tag: str) -> str:
    return tag.partition(":")[0]


def _join_tags(tags: Iterable[str]) -> str:
    return ", ".join(sorted(tags))
