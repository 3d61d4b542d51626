"""Arguments of migrations.

They become parts of file paths, so all of them are checked before a migration is planned.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.config.values import LOCALE
from server.formats.tree import Tree, describe_value, is_null
from server.schema.load import API_ID, ATTRIBUTE_NAME

MAX_CHARS = 200  # Longer names would not fit into a file name.


@dataclass(frozen=True, slots=True)
class ArgumentForm:
    """The format of an argument. `expected` completes an error message after the word "must"."""

    expected: str
    pattern: re.Pattern[str]
    is_list: bool = False
    max_chars: int | None = MAX_CHARS

    def read(self, value: Tree) -> str | list[str]:
        if self.is_list:
            if not isinstance(value, list) or not value or not all(map(_is_text, value)):
                raise ValueError(f"must be a list of names (found {describe_value(value)})")
            return [self._text(item) for item in value]
        if not _is_text(value):
            raise ValueError(f"must be text (found {describe_value(value)})")
        return self._text(value)

    def _text(self, value: Tree) -> str:
        text = str(value)
        if self.max_chars is not None and len(text) > self.max_chars:
            raise ValueError(f"must have at most {self.max_chars} characters (found {describe_value(text)})")
        if not self.pattern.fullmatch(text):
            raise ValueError(f"must {self.expected} (found {describe_value(text)})")
        return text


def _is_text(value: Tree) -> bool:
    return isinstance(value, str) and not is_null(value)


# A part of an existing name. Hand-written schemas can contain spaces and other letters in their file names.
_PART = r"[^./\\\x00-\x1f\x7f]+"
_TYPE, _ATTRIBUTE = rf"{_PART}(?:\.{_PART})*", ATTRIBUTE_NAME.pattern
_COMPONENT = "be CATEGORY.NAME, such as shared.seo"

TYPE = ArgumentForm("be the name of a content type or component, such as article", re.compile(_TYPE))
TYPE_ID = ArgumentForm('be letters and digits, separated by "-" or "_", such as article', API_ID)
COMPONENT = ArgumentForm(_COMPONENT, re.compile(rf"{_PART}\.{_TYPE}"))
NEW_COMPONENT = ArgumentForm(_COMPONENT, re.compile(rf"{API_ID.pattern}\.{API_ID.pattern}"))
ATTRIBUTE = ArgumentForm("be the name of an attribute, such as title", ATTRIBUTE_NAME)
ATTRIBUTES = ArgumentForm("contain only names of attributes, such as title", ATTRIBUTE_NAME, is_list=True)
TARGET = ArgumentForm("be TYPE.attribute, such as article.title", re.compile(rf"{_TYPE}\.(?:{_ATTRIBUTE})"))
CONVERTED_TYPE = ArgumentForm(
    "be a type such as integer, or a kind such as manyToMany", re.compile("[A-Za-z]+")
)
LOCALE_CODE = ArgumentForm("be a locale code, such as en or pt-BR", LOCALE)
FILE_NAME = ArgumentForm(
    "be a file name without a folder, such as names.py", re.compile(r"[^/\\\x00-\x1f\x7f]+")
)
KIND = ArgumentForm("be collectionType or singleType", re.compile("collectionType|singleType"))
TITLE = ArgumentForm("be text of one line", re.compile(r"[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*"))
CODE = ArgumentForm("be Python code", re.compile(".*", re.DOTALL), max_chars=None)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments that a migration can have, and their formats."""

    required: Mapping[str, ArgumentForm]
    optional: Mapping[str, ArgumentForm] = field(default_factory=dict)

    @property
    def all(self) -> Mapping[str, ArgumentForm]:
        return {**self.required, **self.optional}

    def check(self, given: Mapping[str, Any]) -> None:
        for key in self.required:
            if key not in given:
                raise ValueError(f"{key} is missing")
        for key, value in given.items():
            if key not in self.all:
                raise ValueError(f"{key} is unknown")
            try:
                self.all[key].read(value)
            except ValueError as error:
                raise ValueError(f"{key} {error}") from error
