"""Tests of the code's structure: packages, imports of libraries, sizes and docstrings
(docs/architecture.md).
"""

import ast
import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from docs.packages import LAZY, PACKAGES

ROOT = Path(__file__).parent.parent
PATHS = {
    ".".join(path.relative_to(ROOT / "server").with_suffix("").parts): path
    for path in sorted((ROOT / "server").rglob("*.py"))
}
NAMES = sorted(name for name in PATHS if not name.endswith("__init__") and name != "__main__")
MOST_ENTRIES, MOST_LINES, MOST_LINES_OF_FUNCTION = 26, 600, 50
PLAIN_FUNCTION_LINES = 6  # up to this length, a good name can replace the docstring


@cache
def trees() -> Mapping[str, ast.Module]:
    """Return the syntax trees of all modules. They are parsed by the first test, because every process of
    pytest imports this module.
    """
    return {name: ast.parse(path.read_text()) for name, path in PATHS.items()}


@cache
def imports(tree: ast.Module) -> frozenset[str]:
    """Return the full names of all modules that a module imports."""
    return frozenset(_imports(tree))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner.removeprefix("server.") in PATHS else node.module


def inside(name: str) -> set[str]:
    """Return the modules in `server` that a module imports."""
    return {i.removeprefix("server.") for i in imports(trees()[name]) if i.startswith("server.")}


def floor(name: str) -> int:
    """Return the level of a module's package. Modules outside packages are at the lowest level."""
    package = name.partition(".")[0]
    return PACKAGES.index(package) if "." in name else -1


def test_the_service_knows_no_http() -> None:
    http = {"flask", "werkzeug", "http", "wsgiref"}
    services = [name for name in PATHS if name.partition(".")[0] == "service"]
    roots = {n: {i.removeprefix("server.").partition(".")[0] for i in imports(trees()[n])} for n in services}
    assert {name: found & {*http, "api"} for name, found in roots.items() if found & {*http, "api"}} == {}


def test_only_the_service_writes_to_a_site() -> None:
    doors = [name for name in PATHS if name.partition(".")[0] in ("api", "tools", "commands")]
    writing = {
        f"{name}, line {node.lineno}"
        for name in doors
        for node in ast.walk(trees()[name])
        if isinstance(node, ast.Attribute) and node.attr == "write" and _is_site(node.value)
    }
    assert writing == set()


def _is_site(node: ast.expr) -> bool:
    """Return whether an expression is the name `site` or an attribute `site`."""
    return (isinstance(node, ast.Name) and node.id == "site") or (
        isinstance(node, ast.Attribute) and node.attr == "site"
    )


def test_every_package_has_its_place() -> None:
    assert {path.parent.name for path in (ROOT / "server").glob("*/__init__.py")} == set(PACKAGES)


def test_imports_go_downward() -> None:
    upward = {name: {other for other in inside(name) if floor(other) > floor(name)} for name in NAMES}
    assert {name: others for name, others in upward.items() if others} == {}


def test_no_two_modules_need_each_other() -> None:
    done: set[str] = set()
    waiting = set(NAMES)
    while waiting:
        free = {name for name in waiting if inside(name) & set(NAMES) <= done}
        assert free, f"a cycle among {sorted(waiting)}"
        done |= free
        waiting -= free


def test_nothing_is_imported_inside_of_functions() -> None:
    importing = [
        f"{name}.{node.name}, line {inner.lineno}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert importing == []


def test_what_is_loaded_late_is_named_with_its_reason() -> None:
    found = {
        str(node.value)
        for tree in trees().values()
        if "importlib" in imports(tree)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and str(node.value).startswith("server.")
        if str(node.value).removeprefix("server.") in NAMES
    }
    assert {re.sub(r"^server\.commands\..*", "server.commands.*", name) for name in found} == set(LAZY)


def test_what_is_loaded_late_has_the_names_that_are_used() -> None:
    missing = [
        f"{name}: {module}.{attribute}"
        for name, tree in trees().items()
        if "importlib" in imports(tree)
        for module, attribute in late_names(tree)
        if attribute not in defined(trees()[module.removeprefix("server.")])
    ]
    assert missing == []


def late_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each module that `import_module` loads, with each of its names that the code uses.

    The result of `import_module` can be used directly, assigned to a variable, or returned by a function.
    """
    variables: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value) | ast.AnnAssign(
                ast.Name(name), value=value
            ):
                variables[name] = late_module(value)
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value)]):
                variables[name] = late_module(value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            module = late_module(node.value)
            match node.value:
                case ast.Name(name) | ast.Attribute(attr=name) | ast.Call(ast.Name(name)):
                    module = module or variables.get(name, "")
            if module:
                yield module, node.attr


def late_module(value: ast.expr | None) -> str:
    """Return the module that an expression loads with `import_module`, or ""."""
    match value:
        case ast.Call(ast.Name("import_module"), [ast.Constant(str(module))]):
            return module
        case ast.IfExp(body=body):
            return late_module(body)
    return ""


def defined(tree: ast.Module) -> set[str]:
    """Return the names that a module defines or imports at its top level."""
    names = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(ast.Name(name)):
                names.add(name)
            case ast.Assign(targets=targets):
                found = (inner for target in targets for inner in ast.walk(target))
                names.update(inner.id for inner in found if isinstance(inner, ast.Name))
            case ast.Import(aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
    return names


def reasons() -> dict[str, tuple[str, set[str]]]:
    """Return, for each dependency, why it is needed and which modules or packages may import it."""
    text = (ROOT / "pyproject.toml").read_text()
    lists = re.findall(r"^(?:dependencies|postgres|s3) = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert len(lists) == 3
    found = {}
    for line in "".join(lists).splitlines():
        row = re.fullmatch(
            r'    "([a-z0-9.-]+)(?:\[[a-z]+\])?[>=~]=[\d.]+",\s+# (.+): ([a-z_.]+(?:, [a-z_.]+)*)', line
        )
        assert row, line
        found[row[1]] = row[2], set(row[3].split(", "))
    return found


OWNERS = {dependency: owners for dependency, (_, owners) in reasons().items()}


def users(libraries: set[str]) -> set[str]:
    """Return the modules that import one of the libraries."""
    return {n for n, tree in trees().items() if libraries & {i.partition(".")[0] for i in imports(tree)}}


@cache
def distributions() -> Mapping[str, list[str]]:
    """Return the installed distributions by import name."""
    return packages_distributions()


def imported_as(dependency: str) -> set[str]:
    """Return the import names of a distribution."""
    return {name for name, found in distributions().items() if dependency in map(_folded, found)}


def _folded(name: str) -> str:
    return re.sub(r"[-_]+", "-", name).lower()


@pytest.mark.parametrize("dependency", sorted(OWNERS))
def test_a_library_is_imported_by_its_owners_alone(dependency: str) -> None:
    found = users(imported_as(dependency))
    owners = {o: {n for n in found if n == o or n.startswith(f"{o}.")} for o in OWNERS[dependency]}
    assert [owner for owner, owned in owners.items() if not owned] == []
    assert found - set().union(*owners.values()) == set()


def test_every_library_is_a_dependency() -> None:
    libraries = {i.partition(".")[0] for tree in trees().values() for i in imports(tree)}
    known = set().union(*map(imported_as, OWNERS)) | sys.stdlib_module_names | {"server"}
    assert libraries - known == set()


def test_every_cache_says_what_it_saves() -> None:
    """The comment above each cache states the saving that `python -m bench caches` measures."""
    made = re.compile(r"^@(lru_)?cache\b|\blru_cache\(|^ *[a-z_.]+: (State)?Cache\[")
    silent = []
    for name in NAMES:
        lines = (ROOT / "server" / f"{name.replace('.', '/')}.py").read_text().splitlines()
        for number, line in enumerate(lines):
            above = itertools.takewhile(lambda text: text.lstrip().startswith("#"), reversed(lines[:number]))
            comment = " ".join([lines[number - 1], *above])
            if made.search(line) and not re.search(r"#.*\b(saves?|reduces|cached so)\b", comment, re.I):
                silent.append(f"{name}:{number + 1}")
    assert silent == []


def test_timestamps_of_files_are_set_in_one_module() -> None:
    timestamps = {"createdAt", "updatedAt", "publishedAt"}
    packages = ("write", "history", "site", "service", "tools")
    setting = {
        name
        for name in NAMES
        if name.partition(".")[0] in packages
        for node in ast.walk(trees()[name])
        for key in _keys_set_by(node)
        if isinstance(key, ast.Constant) and key.value in timestamps
    }
    # service.overview only shows a timestamp.
    assert setting == {"write.write_timestamps", "service.overview"}


def _keys_set_by(node: ast.AST) -> list[ast.expr | None]:
    """Return the keys of a mapping that a piece of code creates or assigns."""
    if isinstance(node, ast.Dict):
        return node.keys
    return [node.slice] if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) else []


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    entries = [p for p in (ROOT / "server").iterdir() if p.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES


def test_modules_and_functions_are_small() -> None:
    lines = {name: len(path_of(name).read_text().splitlines()) for name in PATHS}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
    functions = {
        f"{name}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name != "bind"  # `bind` is a list of small handlers
    }
    assert {name: count for name, count in functions.items() if count > MOST_LINES_OF_FUNCTION} == {}


def path_of(name: str) -> Path:
    """Return the path of a module's file."""
    return ROOT / "server" / (name.replace(".", "/") + ".py")


def lines_in(function: ast.FunctionDef) -> int:
    """Return the number of lines of a function's body."""
    return (function.end_lineno or 0) - function.body[0].lineno + 1


def test_modules_and_public_functions_say_what_they_are_for() -> None:
    undescribed = [name for name, tree in trees().items() if not ast.get_docstring(tree)]
    undescribed += [
        f"{name}.{node.name}"
        for name, tree in trees().items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not (isinstance(node, ast.FunctionDef) and lines_in(node) <= PLAIN_FUNCTION_LINES)
        and not ast.get_docstring(node)
    ]
    assert undescribed == []
