"""Rules for reusing cached entries after attributes were added to a schema."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from server.documents.constraints import option_errors
from server.documents.encode import ABSENT, Reading, read_value
from server.documents.path_rules import Layout
from server.schema.model import Attribute, Type
from server.site.configure import Configuration
from server.storage.files import digest_of
from server.storage.parse_cache import Form, ReuseRule, Stamp

# immutable, so all documents can share the value
_SHARABLE_TYPES = (type(None), str, int, float, Decimal)
# These options do not affect parsing.
_IGNORED_OPTIONS: Mapping[str, Any] = {
    "private": False,
    "unique": False,
    "localized": True,
    "inversed_by": None,
    "target_field": None,
    "deprecated": "",
}


def stamp_of(configuration: Configuration) -> Stamp:
    settings, types = configuration.settings, configuration.schema.types
    locales = (settings.locales.default, settings.locales.available)
    forms = {uid: _form(type_, types, locales) for uid, type_ in types.items()}
    return _digest(configuration.parse_key), _digest(_layout(configuration).rules), forms


def reuse_rule(configuration: Configuration, stored_stamp: Stamp) -> ReuseRule:
    """Return the rule that decides which of the entries cached with `stored_stamp` can be reused."""
    types, (key, rules, forms) = configuration.schema.types, stamp_of(configuration)
    stored_key, stored_rules, stored_forms = stored_stamp
    added = {
        uid: _added_values(stored_forms.get(uid), form, types[uid], types) for uid, form in forms.items()
    }
    added_values = {uid: values for uid, values in added.items() if values is not None}
    if stored_rules == rules:
        return ReuseRule(added_values, is_same_schema=stored_key == key)
    claim = _layout(configuration).claim
    return ReuseRule(
        added_values,
        is_same_schema=False,
        type_uid_for=lambda path: claimed.type.uid if (claimed := claim(path)) else None,
    )


def _layout(configuration: Configuration) -> Layout:
    return Layout(configuration.schema, configuration.settings)


def _form(type_: Type, types: Mapping[str, Type], locales: object) -> Form:
    own = (type_.kind, type_.singular, type_.plural, type_.draft_publish, type_.localized, type_.files)
    keys = (type_.draft_key, type_.file_name, type_.body, type_.other_keys)
    forms = {a.name: _digest(_nested_options(a, types)) for a in type_.attributes.values()}
    return _digest((own, keys, locales)), forms


def _nested_options(attribute: Attribute, types: Mapping[str, Type]) -> list[Any]:
    declarations: list[Any] = []
    pending, seen = [attribute], set[str]()
    while pending:
        one = pending.pop()
        declarations.append(replace(one, **_IGNORED_OPTIONS))
        for uid in one.component_uids:
            if uid not in seen:
                seen.add(uid)
                attributes = [*types[uid].attributes.values()]
                declarations.append((uid, len(attributes)))
                pending.extend(attributes)
    return declarations


def _digest(value: object) -> bytes:
    return digest_of(repr(value).encode(errors="surrogatepass"))


def _added_values(
    old_form: Form | None, new_form: Form, type_: Type, types: Mapping[str, Type]
) -> dict[int, Any] | None:
    """Return the values that documents get for the added attributes, by position in a document's row.

    Return None if the files must be read again.
    """
    if old_form is None or old_form[0] != new_form[0]:
        return None
    if [(name, form) for name, form in new_form[1].items() if name in old_form[1]] != [*old_form[1].items()]:
        return None
    new = [attribute for name, attribute in type_.attributes.items() if name not in old_form[1]]
    if new and (type_.other_keys or type_.draft_key):
        return None  # Files may already contain the new key, so they must be read again.
    reading = Reading(types)
    values = {attribute.name: read_value(attribute, ABSENT, (), reading) for attribute in new}
    broken = reading.mismatches or any(option_errors(attribute, values[attribute.name]) for attribute in new)
    if broken or not all(isinstance(value, _SHARABLE_TYPES) or value == () for value in values.values()):
        return None
    return {type_.position[name]: value for name, value in values.items()}
