"""Check for attribute options that can't work, such as a minimum above the maximum."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

from server.documents.constraints import value_errors
from server.documents.readers import READERS, InvalidValue
from server.errors import SetupError
from server.formats.config_file import read_config_file
from server.formats.text_positions import line_and_column, nearest_position
from server.formats.tree import describe_value
from server.problems import Problem
from server.schema.model import Attribute, Type

# attribute types from whose values the text of a uid can be derived
_NAMING_TYPES = frozenset(
    {"string", "text", "richtext", "email", "uid", "enumeration", "date", "time", "datetime", "timestamp"}
    | {"integer", "biginteger", "float", "decimal"}
)
# option, message and fix
_Fault = tuple[str, str, str]


def find_invalid_options(root: Path, types: Iterable[Type]) -> Iterator[Problem]:
    """Yield a warning for each attribute option that can't work.

    These problems are not errors, because earlier releases served sites with such options.
    """
    for type_ in types:
        found = list(_faults(type_)) if type_.path else []
        try:
            positions = read_config_file(root, type_.path).positions if found else {}
        # The file has changed since the schemas were read. They will be read again anyway.
        except SetupError:
            continue
        for attribute, (option, message, fix) in found:
            line, column = line_and_column(
                nearest_position(positions, ("attributes", attribute.name, option))
            )
            what = f'{option} of attribute "{attribute.name}" {message}'
            yield Problem(type_.path, line, what, fix, "warning", column, rule="schema")


def _faults(type_: Type) -> Iterator[tuple[Attribute, _Fault]]:
    for attribute in type_.attributes.values():
        for fault in (*_limits(attribute), *_default(attribute), *_target_field(type_, attribute)):
            yield attribute, fault


def _limits(attribute: Attribute) -> Iterator[_Fault]:
    pairs = (
        ("min", attribute.min, "max", attribute.max),
        ("minLength", attribute.min_length, "maxLength", attribute.max_length),
    )
    for low, least, high, most in pairs:
        if least is not None and most is not None and Decimal(str(least)) > Decimal(str(most)):
            yield low, f"is {least}, but {high} is {most}", "correct one of them; no value is valid"


def _default(attribute: Attribute) -> Iterator[_Fault]:
    default = attribute.default
    if not attribute.has_default or attribute.type == "password" or default == "":
        return
    found = describe_value(default)
    try:
        value = READERS[attribute.type](default, attribute)
    except InvalidValue as error:
        yield "default", f"must be {error.expected} (found {found})", error.fix or "correct it, or remove it"
        return
    for message in value_errors(attribute, value):
        yield "default", f"{message} (found {found})", "correct it, or remove it"


def _target_field(type_: Type, attribute: Attribute) -> Iterator[_Fault]:
    target = type_.attributes.get(attribute.target_field or "")
    if attribute.type == "uid" and target and target.type not in _NAMING_TYPES:
        what = f'must be an attribute with text, but "{target.name}" is of type {target.type}'
        yield "targetField", what, "use the name of an attribute of type string or text"
