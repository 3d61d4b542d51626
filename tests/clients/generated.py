"""Tests of what `bifolio types --zod` and `--python` generate: compiled with the real compilers, and run
against a real server (`make test-clients`).

With the environment variable REAL, a folder of archives (see bench/real), the trees in it are tested too.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from bench.real.trees import TREES, find, unpack
from server.auth.accounts import Accounts
from server.schema.load import read_content_types
from tests.api.test_upload import picture
from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.servers import ROOT, free_port, serving
from tests.sites import Files, collection, component, documents, relation, schema, write
from tests.waiting import until

HERE = Path(__file__).parent
REAL = Path(os.environ["REAL"]) if "REAL" in os.environ else None
MODULES = HERE / "node_modules"

# --- sites ----------------------------------------------------------------------------------------

STRING = {"type": "string"}
TREE = {"type": "component", "component": "odd-1.tree"}
ODD: Files = {
    "site.yaml": "api: {populate_with_pagination: allow}\n",
    **collection(
        "class",
        {
            "class": {**STRING, "required": True},
            "a-b": {"type": "enumeration", "enum": ["x", "__proto__", "ü"]},
            "__proto__": {"type": "integer"},
            "constructor": STRING,
            "int": {"type": "integer"},
            "_private": {"type": "json"},
            "self": relation("oneToOne", "class"),
            "tree": {**TREE, "required": True},
            "zone": {"type": "dynamiczone", "components": ["odd-1.tree"]},
            "empty": {"type": "dynamiczone", "components": []},
            "any": {"type": "relation", "relation": "morphToMany"},
            "blocks": {"type": "blocks"},
            "list": {"type": "array"},
            "big": {"type": "biginteger"},
            "exact": {"type": "decimal"},
            "time": {"type": "time"},
            "gone": {"type": "relation", "relation": "oneToOne", "target": "admin::user"},
        },
        drafts=True,
    ),
    **collection("set", {}),
    **collection("client", {"name": STRING}, localized=True),
    **collection("typed-dict", {"pass": STRING}),
    "content-types/none.json": schema("none", {}, single=True),
    **component("odd-1.tree", {"leaves": {**TREE, "repeatable": True}}),
    **documents(
        "classs",
        one={
            "class": "a",
            "a-b": "__proto__",
            "__proto__": 5,
            "constructor": "c",
            "tree": {"leaves": [{"leaves": []}]},
            "zone": [{"__component": "odd-1.tree"}],
            "any": [{"__type": "api::client.client", "documentId": "x"}],
            "self": "one",
            "blocks": [{"type": "paragraph", "children": [{"type": "text", "text": "x"}]}],
            "list": [1, "a", None],
            "big": 12345678901234567890,
            "exact": "1.50",
            "time": "10:20",
            "_private": {"__proto__": 1},
        },
        two={"class": "b", "tree": {}},
    ),
    "content/classs/three.draft.json": "{}",
    **documents("clients", x={"name": "X"}),
    "content/none.yaml": "{}\n",
}  # fmt: skip

PICTURES: Files = {
    "site.yaml": """api: {populate_with_pagination: allow}
media:
  placeholders: true
  formats:
    card: {w: 480, h: 320, fit: cover, format: webp}
    wide-2: {w: 600, format: auto}
""",
    **collection("note", {"cover": {"type": "media"}, "gallery": {"type": "media", "multiple": True}}),
    **documents("notes", one={"cover": "a.png", "gallery": ["a.png"]}, two={}, three={}),
    "content/uploads/a.png": picture(700, 500),
    "content/uploads/draw.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
}


def own_site(root: Path) -> None:
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "site.yaml", root)


def make_site(name: str, folder: Path) -> Path:
    """Create a site: the repository's own, one with odd names, one with pictures, or a tree in REAL."""
    root = folder / name
    if name == "own":
        root.mkdir()
        own_site(root)
    elif name == "odd":
        write(root, ODD)
    elif name == "pictures":
        write(root, PICTURES)
    else:
        source = find(next(tree for tree in TREES if tree.name == name), REAL or folder)
        assert source, name
        unpack(source, name, folder)
        generate = [sys.executable, "-m", "server", "init", str(root), "--yes"]
        subprocess.run(generate, check=True, stdout=subprocess.DEVNULL)
    return root


SITES = ["own", "odd", "pictures", *([tree.name for tree in TREES if not tree.defines_types] if REAL else [])]


@contextmanager
def running(root: Path) -> Iterator[dict[str, str]]:
    """Context manager: run a server, and yield the environment variables for its clients."""
    accounts = Accounts(root)
    token = accounts.create_token("generated", "full-access")
    accounts.close()
    with serving(root, free_port(), output=subprocess.DEVNULL) as url:
        yield {**os.environ, "BIFOLIO_URL": url, "BIFOLIO_TOKEN": token}


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    if (reason := missing_node() or install(HERE, "--legacy-peer-deps")) is not None:
        skipped("test-clients", reason)
        pytest.skip(reason)


@dataclass(frozen=True, slots=True)
class Served:
    """A site with a running server, and the environment variables for its clients."""

    root: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Served]]:
    """Return a function that serves a site. All tests of a site share its server."""
    with ExitStack() as stack:

        @cache
        def serve(name: str) -> Served:
            root = make_site(name, tmp_path_factory.mktemp(name))
            return Served(root, stack.enter_context(running(root)))

        yield serve


def generate(root: Path, flag: str, out: Path) -> None:
    flags = [flag] if flag else []
    command = [sys.executable, "-m", "server", "types", *flags, "--site", str(root), "--out", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


# --- zod ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def zod(served: Callable[[str], Served], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that compiles the scripts with the zod schemas of a site (`tsc --strict`), and
    returns the folder. They are compiled together, because each start of the compiler takes seconds.
    """

    @cache
    def compiled(name: str) -> Path:
        folder = tmp_path_factory.mktemp("zod") / name
        scripts: tuple[str, ...] = (
            ("zod_answers.ts", "zod_typed.ts") if name == "own" else ("zod_answers.ts",)
        )
        if name == "pictures":
            scripts += ("pictures.ts", "zod_pictures.ts")
        compile_zod(served(name).root, folder, *scripts)
        return folder

    return compiled


def compile_zod(root: Path, folder: Path, *scripts: str) -> None:
    """Compile scripts with the zod schemas of a site (`tsc --strict`)."""
    compile_with("--zod", root, folder, *scripts)


def compile_with(flag: str, root: Path, folder: Path, *scripts: str) -> None:
    folder.mkdir()
    (folder / "node_modules").symlink_to(MODULES, target_is_directory=True)
    for name in ("package.json", *scripts):
        shutil.copy(HERE / name, folder)
    generate(root, flag, folder / "bifolio.ts")
    options = {
        **json.loads((HERE / "tsconfig.json").read_text())["compilerOptions"],
        "noImplicitOverride": True,
        "exactOptionalPropertyTypes": True,
        "noUnusedLocals": True,
    }
    config = {"compilerOptions": options, "files": [*scripts, "bifolio.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    run(["node", str(MODULES / "typescript" / "bin" / "tsc"), "--project", str(folder)], folder)


@pytest.mark.parametrize("name", SITES)
def test_zod_accepts_all_answers_and_refuses_damaged_ones(
    served: Callable[[str], Served], zod: Callable[[str], Path], name: str
) -> None:
    types = read_content_types(served(name).root).content_types
    collections = {t.plural: t.singular for t in types if t.kind == "collectionType"}
    singles = [t.singular for t in types if t.kind == "singleType"]
    # A populated list of a large tree can be larger than the API allows.
    environment = {**served(name).environment, "PAGE_SIZE": "100" if name in ("own", "odd") else "5"}
    environment |= {"COLLECTIONS": json.dumps(collections), "SINGLES": json.dumps(singles)}
    found: dict[str, Any] = json.loads(run(["node", "made/zod_answers.js"], zod(name), environment))
    assert found["parsed"] > 5
    assert found["refused"] > 30
    # The items of these attributes can be anything, and zod ignores a key `__proto__`.
    free = {
        f"{t.singular}.{a.name}"
        for t in types
        for a in t.attributes.values()
        if a.type in ("json", "array") or a.name == "__proto__"
    }
    assert set(found["anything"]) <= free
    print(name, found["parsed"], found["refused"])


def test_zod_infers_the_types_of_answers(served: Callable[[str], Served], zod: Callable[[str], Path]) -> None:
    assert run(["node", "made/zod_typed.js"], zod("own"), served("own").environment) == "typed\n"


# --- pictures -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(served: Callable[[str], Served]) -> Served:
    """A site whose pictures have all their variants and placeholders."""
    site = served("pictures")
    url, token = site.environment["BIFOLIO_URL"], site.environment["BIFOLIO_TOKEN"]
    request = Request(f"{url}/api/upload/files", headers={"Authorization": f"Bearer {token}"})

    def is_complete() -> bool:
        with urlopen(request) as answer:
            files = json.load(answer)
        return any(file["placeholder"] and "small" in (file["formats"] or {}) for file in files)

    until(is_complete)
    return site


def test_the_types_of_pictures_are_those_of_answers(pictures: Served, tmp_path: Path) -> None:
    compile_with("", pictures.root, tmp_path / "typed", "pictures.ts")
    assert run(["node", "made/pictures.js"], tmp_path / "typed", pictures.environment) == "pictures\n"


@pytest.mark.parametrize("script", ["pictures", "zod_pictures"])
def test_zod_describes_pictures(pictures: Served, zod: Callable[[str], Path], script: str) -> None:
    assert run(["node", f"made/{script}.js"], zod("pictures"), pictures.environment) == "pictures\n"


def test_the_python_client_describes_pictures(pictures: Served, python: Callable[[str], Path]) -> None:
    command = [sys.executable, "pictures.py"]
    assert run(command, python("pictures"), pictures.environment) == "pictures\n"


# --- Python ---------------------------------------------------------------------------------------

ODD_SCRIPT = """\
import os
from bifolio_client import Class, ClassInput, Client, ClientType
client = Client(os.environ['BIFOLIO_URL'], os.environ['BIFOLIO_TOKEN'])
one: Class = client.classs.find_one('one', populate='*')
assert (one['class'], one['a-b'], one['__proto__'], one['int']) == ('a', '__proto__', 5, None)
assert [entry['__component'] for entry in one.get('zone', [])] == ['odd-1.tree']
data: ClassInput = {'class': 'c', 'tree': {'leaves': [{}]}, 'a-b': 'ü', '__proto__': 7}
made = client.classs.create(data)
assert (made['a-b'], made['__proto__']) == ('ü', 7)
names: list[ClientType] = list(client.clients.find())
assert names[0]['name'] == 'X'
client.typed_dicts.create({'pass': 'x'})
assert client.none.find()['documentId']
"""
PICTURES_SCRIPT = """\
import os
from bifolio_client import Client, UploadFile
client = Client(os.environ['BIFOLIO_URL'], os.environ['BIFOLIO_TOKEN'])
note = client.notes.find_one('one', populate='*')
for file in [note.get('cover'), *note.get('gallery', [])]:
    assert file
    placeholder: str | None = file['placeholder']
    color: str | None = file['color']
    assert placeholder and color and len(placeholder) >= 18 and color.startswith('#')
    assert file['formats']['card']['size'] is None
    assert file['formats']['wide-2']['width'] == 600
def make_mistake(file: UploadFile) -> None:
    file['placeholders']  # type: ignore[typeddict-item]
print('pictures')
"""
SCRIPTS = {
    "pictures": {"pictures.py": PICTURES_SCRIPT},
    "own": {"python_typed.py": (HERE / "python_typed.py").read_text()},
    "odd": {"odd.py": ODD_SCRIPT},
}
COUNTS = """\
from bifolio_client import Client
import os, itertools
client = Client(os.environ['BIFOLIO_URL'], os.environ['BIFOLIO_TOKEN'])
for name, kind in vars(client).items():
    if hasattr(kind, 'find_all'):
        print(name, len(list(itertools.islice(kind.find_all(populate='*'), 20))))
"""


@pytest.fixture(scope="module")
def python(
    served: Callable[[str], Served], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function that generates the client of a site, checks it and its scripts with mypy and pyright,
    and returns their folder.
    """

    @cache
    def checked(name: str) -> Path:
        folder = tmp_path_factory.mktemp("python") / name
        scripts = SCRIPTS.get(name, {})
        write(folder, scripts)
        generate(served(name).root, "--python", folder / "bifolio_client.py")
        check_python(folder, "bifolio_client.py", *scripts)
        return folder

    return checked


def check_python(folder: Path, *scripts: str) -> None:
    """Check scripts with mypy and pyright."""
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11"]
    mypy += ["--cache-dir", str(folder.parent.parent / "mypy")]  # Both runs read the types of the library.
    environment = {**os.environ, "PYTHONPATH": "", "MYPYPATH": ""}
    run([*mypy, *scripts], folder, environment)
    pyright = ["node", str(MODULES / "pyright" / "index.js"), "--pythonpath", sys.executable, *scripts]
    run(pyright, folder, environment)


@pytest.mark.parametrize("name", SITES)
def test_the_python_client_is_typed(
    served: Callable[[str], Served], python: Callable[[str], Path], name: str
) -> None:
    counts = run([sys.executable, "-c", COUNTS], python(name), served(name).environment)
    assert sum(int(line.split()[1]) for line in counts.splitlines()) > 2


def test_the_python_client_reads_and_writes(
    served: Callable[[str], Served], python: Callable[[str], Path]
) -> None:
    assert run([sys.executable, "python_typed.py"], python("own"), served("own").environment) == "typed\n"


def test_the_python_client_has_odd_names(
    served: Callable[[str], Served], python: Callable[[str], Path]
) -> None:
    run([sys.executable, "odd.py"], python("odd"), served("odd").environment)
