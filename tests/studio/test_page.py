"""The files of the studio's page: their size, the origin of bundled libraries, and rules for the code."""

import hashlib
import json
import re
from pathlib import Path

import brotli
import pytest

from server.api.studio.routes import SHEET, compressed

PAGE = Path(__file__).parent.parent.parent / "server/api/studio/page"
VENDOR = PAGE / "vendor"
MOST_BYTES = 440_000  # in a checkout; browser_bundle.py has the limit for packages
MOST_LINES = 300
LICENCES = {"MIT", "Apache-2.0", "BSD-3-Clause", "ISC", "(MPL-2.0 OR Apache-2.0)"}
MODULES = sorted(
    path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*.js") if VENDOR not in path.parents
)


def test_the_whole_page_stays_within_its_limit() -> None:
    files = [path for path in PAGE.rglob("*") if path.suffix in (".js", ".html", ".svg")]
    names = [SHEET, *(path.relative_to(PAGE).as_posix() for path in files)]
    assert sum(len(compressed(name)) for name in names) < MOST_BYTES


def test_one_stylesheet_has_all_of_them_in_their_order() -> None:
    names = re.findall(r'^@import "\./(.+)";$', (PAGE / SHEET).read_text(), re.MULTILINE)
    assert sorted(names) == sorted(
        {path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*.css")} - {SHEET}
    )
    sent = brotli.decompress(compressed(SHEET)).decode()
    texts = "".join((PAGE / name).read_text() for name in names)
    assert sent.strip() == re.sub(r"/\*.*?\*/|^ +", "", texts, flags=re.MULTILINE | re.DOTALL).strip()
    assert "@import" not in sent
    assert re.findall(r'rel="stylesheet" href="(.+?)"', (PAGE / "index.html").read_text()) == [f"./{SHEET}"]


def test_what_is_bundled_is_what_the_manifest_says() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    assert {path.name for path in VENDOR.glob("*.js")} == set(manifest)
    wanted = json.loads((PAGE.parents[3] / "vendor/package.json").read_text())["dependencies"]
    licences = (VENDOR / "licences.txt").read_text()
    for name, made in manifest.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == made["sha256"]
        for package in made["packages"]:
            assert package["licence"] in LICENCES
            assert wanted.get(package["name"], package["version"]) == package["version"]
            assert re.search(rf"^{re.escape(package['name'])}$", licences, re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_each_module_is_small_says_what_it_is_for_and_imports_files_alone(name: str) -> None:
    text = (PAGE / name).read_text()
    assert text.startswith("/**"), "a comment says what a module is for"
    assert len(text.splitlines()) <= MOST_LINES
    assert max(map(len, text.splitlines())) <= 120
    imported = re.findall(r'^(?:import|export) .*?from "([^"]+)";', text, re.MULTILINE | re.DOTALL)
    assert all(((PAGE / name).parent / path).is_file() for path in imported)
    assert not re.search(r"\b(window|globalThis)\.\w+ =|innerHTML|\beval\(|new Function", text)


def test_modules_that_are_loaded_late_are_there_with_what_is_taken_from_them() -> None:
    text = "\n".join((PAGE / name).read_text() for name in MODULES)
    loaded = re.findall(r'\blater\("([^"]+)", "(\w+)"\)', text)
    assert len(loaded) > 8
    for path, name in loaded:
        exported = rf"^export (function {name}\b|{{ {name} }} from )"
        assert re.search(exported, (PAGE / path).read_text(), re.MULTILINE), path
    parts = re.findall(r'\bloadPart\("([^"]+)"\)', text)
    assert len(parts) > 2
    assert all((PAGE / path).is_file() for path in parts)


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports = {name: imported_by(PAGE / name) & set(MODULES) for name in MODULES}
    assert imports["documents/panels.js"] >= {"preview/panel.js", "documents/panel-address.js"}
    done: set[str] = set()
    while len(done) < len(imports):
        free = {name for name, imported in imports.items() if imported <= done} - done
        assert free, f"a circle among {sorted(set(imports) - done)}"
        done |= free


@pytest.mark.parametrize("folder", ["list", "form", "store"])
def test_lists_forms_and_stores_know_no_content_types(folder: str) -> None:
    names = [name for name in MODULES if name.startswith(f"{folder}/")]
    imports = {path for name in names for path in imported_by(PAGE / name)}
    assert len(names) > 1
    assert {path for path in imports if path.startswith("documents/")} == set()


def imported_by(module: Path) -> set[str]:
    """Return the modules that a module imports, statically or dynamically, as paths below the page's
    folder.
    """
    text = module.read_text()
    at_once = re.findall(r'from "([^"]+)";', text)
    paths = {(module.parent / path).resolve().relative_to(PAGE).as_posix() for path in at_once}
    return paths | set(re.findall(r'\b(?:later|loadPart)\("([^"]+)"', text))
