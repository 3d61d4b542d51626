"""The shape of the code: layers, owners of libraries, sizes, docstrings (docs/architecture.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT / "server").with_suffix("").parts): ast.parse(path.read_text())
    for path in sorted((ROOT / "server").rglob("*.py"))
}
# From the bottom up: a module imports only from layers above its own line in this list.
LAYERS: dict[str, str] = {
    "words": "background errors moments spelling words ids passwords state sequence problems marks",
    "texts": "qs tree outline emit frontmatter images",
    "schema": "schema operators export.section settings coherence content_types commands builder mail",
    "values": "values options documents encode links layout files gallery media git locales",
    "generated": "sentences naming typescript.literals typescript.shapes typescript.module",
    "questions": "query reach sorting filters pagination populate ask permissions etags",
    "storage": "journal feed pending edit edit_json accounts store users sessions compose",
    "index": "fragments ordering tables index dangling vocabulary containing matching plan arrange",
    "answers": "find render validate versions context people",
    "changes": "parsed held loading relink write uploading",
    "import": (
        "strapi.source strapi.record strapi.merge strapi.schemas strapi.uploads strapi.documents "
        "strapi.locales strapi.files strapi.links strapi.roles strapi.archive "
        "strapi.download strapi.remote strapi.importing strapi.report"
    ),
    "site": "configure site",
    "search": "search.stems search.words search.markup search.question search.texts search.highlight "
    "search.catalog search.status search.asking search.engine search.scan search.find search.indexer "
    "search.feeder",
    "entrances": "watch following scaling reading answers cli_accounts cli_import cli_search cli_types",
    "export": "export.asking export.contents export.manifest export.folder export.uploads export.run"
    " cli_export",
    "api": "api.auth api.builder api.content api.i18n api.search api.upload api.uploads api.users",
    "reference": "openapi.values openapi.types openapi.shared openapi.parameters openapi.operations "
    "openapi.content openapi.services openapi.examples openapi.search openapi.document openapi.routes",
    "app": "limiting app",
    "server": "serve",
    "tools": "check.audit check.survey check.fixes check.report check.formats check.command "
    "init.scan init.places init.groups init.infer init.settings init.propose init.starter init.table "
    "init.command",
    "command": "cli_serve cli",
}
LEVEL = {name: i for i, names in enumerate(LAYERS.values()) for name in names.split()}
OWNERS = {
    "argon2": {"passwords"},
    "babel": {"locales"},
    "brotli": {"answers"},
    "click": {
        "check",
        "cli",
        "cli_accounts",
        "cli_export",
        "cli_import",
        "cli_search",
        "cli_serve",
        "cli_types",
        "commands",
        "init",
    },
    "email_validator": {"options"},
    "filetype": {"images"},
    "flask": {"app", "context", "limiting", "api", "openapi"},
    "flask_cors": {"app"},
    "flask_limiter": {"limiting"},
    "frontmatter": {"frontmatter"},
    "granian": {"serve"},
    "immutables": {"index", "tables"},
    "jwt": {"sessions"},
    "orjson": {"render", "app"},
    "PIL": {"images"},
    "qs_codec": {"qs"},
    "regex": {"options"},
    "ruamel": {"emit"},
    "slugify": {"uploading"},
    "snowballstemmer": {"search.stems"},
    "sqlalchemy": {"accounts", "users"},
    "watchfiles": {"watch"},
    "werkzeug": {"app", "answers", "api", "openapi"},
    "whoosh": {"search.engine", "search.asking"},
    "xxhash": {"etags"},
    "yaml": {"tree", "outline", "emit"},
}


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}".removeprefix("server.")
                yield f"server.{inner}" if inner in MODULES else node.module


def inside(name: str) -> set[str]:
    found = {i.removeprefix("server.") for i in imports(MODULES[name]) if i.startswith("server.")}
    return {i for i in found if i in LEVEL}


def test_every_module_has_a_layer() -> None:
    known = {name for name in MODULES if not name.endswith("__init__") and name != "__main__"}
    assert known == set(LEVEL)


@pytest.mark.parametrize("name", sorted(LEVEL))
def test_imports_go_downward(name: str) -> None:
    above = {other for other in inside(name) if LEVEL[other] > LEVEL[name]}
    assert above == set()


def test_no_two_modules_need_each_other() -> None:
    done: set[str] = set()
    waiting = set(LEVEL)
    while waiting:
        free = {name for name in waiting if inside(name) <= done}
        assert free, f"a cycle among {sorted(waiting)}"
        done |= free
        waiting -= free


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_is_imported_inside_of_functions(name: str) -> None:
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.FunctionDef):
            inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert inner == [], f"{name}.{node.name}"


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_a_library_has_its_owner(library: str) -> None:
    users = {
        name if name in OWNERS[library] else name.partition(".")[0]
        for name, tree in MODULES.items()
        if any(i.partition(".")[0] == library for i in imports(tree))
    }
    assert users
    assert users <= OWNERS[library]


def test_every_dependency_has_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed
    for line in listed[1].splitlines():
        assert re.fullmatch(r'    "[a-z0-9.-]+[>=]=[\d.]+",\s+# .+: [a-z_.]+(, [a-z_.]+)*', line), line


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_and_functions_are_small(name: str) -> None:
    path = ROOT / "server" / (name.replace(".", "/") + ".py")
    assert len(path.read_text().splitlines()) <= 400
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.FunctionDef) and node.name != "blueprint":  # a list of small handlers
            assert (node.end_lineno or 0) - node.lineno < 50, f"{name}.{node.name}"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_and_public_functions_say_what_they_are_for(name: str) -> None:
    tree = MODULES[name]
    assert ast.get_docstring(tree), name
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{name}.{node.name}"


def test_the_docs_name_every_module_under_its_layer() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for layer, names in LAYERS.items():
        section = re.search(rf"^### {layer}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
        assert section, layer
        assert re.findall(r"^\| `([a-z0-9_.]+)`", section[1], re.MULTILINE) == names.split()
