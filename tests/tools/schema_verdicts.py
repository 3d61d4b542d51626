"""Comparison of JSON Schemas with the problems that Bifolio reports for the same file."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from server.config.reader import read_settings
from server.documents.path_rules import MARKDOWN, is_draft_name
from server.formats.tree import resolve_plain_values
from server.schema.load import read_content_types
from server.schema.model import Type
from server.storage.read import parse
from server.storage.store import Store
from server.tools.json_schemas import document_schemas

TIME = "2024-01-01T00:00:00.000Z"
# JSON Schema can't see these: they concern the text or the name of a file, not its values.
BEYOND = frozenset({"repeated-key", "file-name"})


class Verdicts:
    """The store and the JSON Schemas of one site, which judge the same files."""

    def __init__(self, root: Path) -> None:
        self.schema = read_content_types(root)
        self.store = Store(root, self.schema, read_settings(root), lambda path, modified: (TIME, TIME))
        self.texts = document_schemas(self.schema)

    @cache  # noqa: B019 -- a test has one or two of them
    def validator(self, path: str) -> Draft202012Validator:
        schema = json.loads(self.texts[path])
        Draft202012Validator.check_schema(schema)
        return Draft202012Validator(schema)

    def type_of(self, path: str) -> Type:
        claim = self.store.layout.claim(path)
        assert claim, path
        return claim.type

    def check(self, path: str, text: str) -> list[str]:
        """Return the problems that Bifolio reports for a file."""
        entry = self.store.parse_file(path, text.encode(), (0, 0, 0))
        assert entry, path
        return [str(problem) for problem in entry.problems if problem.rule not in BEYOND]

    def validate(self, path: str, text: str) -> list[str]:
        """Return the errors that an editor shows for a file."""
        type_ = self.type_of(path)
        format_ = "front-matter" if path.endswith(MARKDOWN) else "json" if path.endswith(".json") else "yaml"
        draft = ".draft" if type_.draft_publish and is_draft_name(path) else ""
        value = resolve_plain_values(parse(path, text, None))
        validator = self.validator(f"{format_}/{type_.singular}{draft}.json")
        return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def is_finite(value: Any) -> bool:
    """Return whether JSON can represent all numbers in a value."""
    if isinstance(value, dict | list):
        return all(map(is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)
