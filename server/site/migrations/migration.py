"""Migrations, and files such as `migrations/0007-rename-headline.yaml` that contain them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.errors import SetupError, ValidationError
from server.formats.text_positions import Positions, line_and_column, nearest_position
from server.formats.tree import SyntaxProblem, describe_value
from server.formats.yaml.reader import read_yaml
from server.formats.yaml.writer import yaml_mapping
from server.schema.model import Schema, Type
from server.schema.spelling import suggestion
from server.site.migrations.arguments import Arguments
from server.site.migrations.draft import MIGRATIONS

_NAME = re.compile(rf"{MIGRATIONS}/([0-9]{{4,9}})-([a-z0-9-]+)\.yaml")
# These arguments are not part of the command.
HIDDEN_ARGUMENTS = ("from", "from-plural", "code")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration. `path` is the path of its file, or "" if it has no file yet."""

    operation: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""

    def __str__(self) -> str:
        shown = ((key, value) for key, value in self.arguments.items() if key not in HIDDEN_ARGUMENTS)
        return " ".join((self.operation, *(_shown(key, value) for key, value in shown)))

    @property
    def label(self) -> str:
        return self.path.removeprefix(f"{MIGRATIONS}/").removesuffix(".yaml") or str(self)


def _shown(key: str, value: Any) -> str:
    if key == "via":
        return f"--via {value}"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def new_migration_path(paths: Iterable[str], migration: Migration, name: str) -> str:
    numbers = [int(found[1]) for found in map(_NAME.fullmatch, paths) if found]
    slug = _NOT_SLUG.sub("-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-")
    return f"{MIGRATIONS}/{max(numbers, default=0) + 1:04}-{migration.operation}-{slug[:60]}.yaml"


def renumbered_path(paths: Iterable[str], path: str) -> str:
    numbers = [int(found[1]) for found in map(_NAME.fullmatch, paths) if found]
    return re.sub(r"/[0-9]+-", f"/{max(numbers, default=0) + 1:04}-", path, count=1)


def migration_text(migration: Migration) -> str:
    head = f"# bifolio migrate {migration}\n"
    return head + yaml_mapping({"operation": migration.operation, **migration.arguments})


def migration_paths(paths: Iterable[str]) -> Iterator[str]:
    found = [(int(match[1]), path) for path in paths if (match := _NAME.fullmatch(path))]
    return (path for _, path in sorted(found))


def read_migration(path: str, text: str, known_arguments: Mapping[str, Arguments]) -> Migration:
    """Parse the file of a migration. Raises SetupError if the file is invalid."""
    positions: Positions = {}
    try:
        tree = read_yaml(text, positions)
    except SyntaxProblem as error:
        raise SetupError(path, error.line, error.message, error.fix, error.column) from error
    named = tree.get("operation") if isinstance(tree, dict) else tree
    if not isinstance(tree, dict) or not isinstance(named, str) or named not in known_arguments:
        found = named if isinstance(named, str) else describe_value(named)
        fix = suggestion(found, known_arguments) or "use one of " + ", ".join(known_arguments)
        line, column = line_and_column(nearest_position(positions, ("operation",)))
        raise SetupError(path, line or 1, f'unknown operation "{found}"', fix, column)
    operation = str(tree.pop("operation"))
    line, column = line_and_column(nearest_position(positions, ("operation",)))
    for key in known_arguments[operation].required:
        if key not in tree:
            fix = f"add {key}, or restore the file from git"
            raise SetupError(path, line, f'"{operation}" must have the key "{key}"', fix, column)
    given = {}
    for key, value in tree.items():
        line, column = line_and_column(nearest_position(positions, (key,)))
        if key not in known_arguments[operation].all:
            fix = suggestion(str(key), known_arguments[operation].all) or "use " + ", ".join(
                known_arguments[operation].all
            )
            raise SetupError(path, line, f'unknown key "{key}"', fix, column)
        try:
            given[str(key)] = known_arguments[operation].all[key].read(value)
        except ValueError as error:
            fix = f"correct {key}, or restore the file from git"
            raise SetupError(path, line, f'"{key}" {error}', fix, column) from error
    return Migration(operation, given, path)


# --- names ----------------------------------------------------------------------------------------


def find_type(schema: Schema, name: str) -> Type:
    """Return the type with a name such as `article` or `shared.seo`.

    Raises ValidationError if there is no such type.
    """
    found = schema.subjects.get(name) or schema.types.get(name)
    if found is None or (found.kind != "component" and not found.uid.startswith("api::")):
        names = [*schema.subjects, *(uid for uid, t in schema.types.items() if t.kind == "component")]
        raise ValidationError(_no(f'unknown type "{name}"', name, names))
    return found


def split_target(schema: Schema, target: str) -> tuple[Type, str]:
    """Split a name such as `article.title` into the type and the name of the attribute.

    The attribute need not exist. Raises ValidationError if the type is unknown or the name is malformed.
    """
    name, dot, attribute = target.rpartition(".")
    if not dot or not name or not attribute:
        raise ValidationError(f'"{target}" must be TYPE.attribute, such as article.title')
    return find_type(schema, name), attribute


def require_attribute(type_: Type, name: str) -> None:
    if name not in type_.attributes:
        raise ValidationError(_no(f'{type_.uid} has no attribute "{name}"', name, type_.attributes))


def _no(what: str, name: str, known: Iterable[str]) -> str:
    hint = suggestion(name, known)
    return f"{what}; {hint}" if hint else what
