"""`bifolio types`: its output, and what TypeScript's compiler reports for it.

tests/clients/typed.ts uses the output with `@strapi/client` against a running server (`make test-clients`).
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.config.reader import read_settings
from server.query.operators import OPERATORS
from server.schema.load import read_content_types
from server.schema.model import ATTRIBUTE_TYPES
from server.tools.typescript import BODY_TYPES, RESPONSE_TYPES, write_module
from tests.sites import STRING, Files, collection, component, relation, write

ROOT = Path(__file__).parents[2]
TSC = ROOT / "tests" / "clients" / "node_modules" / "typescript" / "bin" / "tsc"
NOTE = collection("note", {"title": {"type": "string", "required": True, "maxLength": 9}, "to-do": STRING})


def module(root: Path, files: Files) -> str:
    write(root, files)
    return write_module(read_content_types(root), read_settings(root))


def shape(text: str, name: str) -> str:
    """Return the members of a type, without comments."""
    found = re.search(
        rf"^export type {name} = (?:Version & )?{{(?:\n(.*?)^)?}};", text, re.MULTILINE | re.DOTALL
    )
    assert found, name
    return " ".join(re.sub(r"/\*\*.*?\*/", "", found[1] or "").split())


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["types", *arguments], catch_exceptions=False)


# --- output -------------------------------------------------------------------------------------


def test_required_is_never_null_and_names_are_quoted_where_they_must_be(tmp_path: Path) -> None:
    text = module(tmp_path, NOTE)
    assert shape(text, "Note") == 'title: string; "to-do": string | null;'
    assert shape(text, "NoteInput") == 'title: string; "to-do"?: string | null;'
    assert "/** A line of text. At most 9 characters. */" in text


def test_image_formats_have_the_names_in_the_settings(tmp_path: Path) -> None:
    upload = '[name in "thumbnail" | "small" | "medium" | "large"]?: ImageFormat }'
    assert f"export type ImageFormats = {{ {upload};\n" in module(tmp_path, NOTE)
    settings = "media: {formats: {card: {w: 480}, to-do: {w: 1}}}\n"
    unknown = 'Omit<ImageFormat, "size" | "sizeInBytes"> & { size: null; sizeInBytes: null }'
    own = f'{{ [name in "card" | "to-do"]?: {unknown} }}'
    text = module(tmp_path, {**NOTE, "site.yaml": settings})
    assert f"export type ImageFormats = {{ {upload} & {own};\n" in text
    disabled = settings.replace("formats:", "transform: {enabled: false}, formats:")
    assert unknown not in module(tmp_path, {**NOTE, "site.yaml": disabled})


def test_media_have_placeholders_if_the_settings_say_so(tmp_path: Path) -> None:
    added = "placeholder: string | null; color: string | null;"
    assert added not in shape(module(tmp_path, NOTE), "UploadFile")
    text = module(tmp_path, {**NOTE, "site.yaml": "media: {placeholders: true}\n"})
    assert shape(text, "UploadFile").endswith(added)


def test_passwords_and_private_attributes_are_written_and_never_shown(tmp_path: Path) -> None:
    secret = {"word": {"type": "password"}, "aside": {"type": "string", "private": True}}
    hidden = relation("manyToOne", "note", private=True)
    text = module(tmp_path, collection("note", {**secret, "of": hidden}))
    assert shape(text, "Note") == ""
    assert "of:" not in shape(text, "NoteLinks")
    assert shape(text, "NoteInput") == "word?: string | null; aside?: string | null; of?: RelationInput;"


def test_links_say_what_they_lead_to(tmp_path: Path) -> None:
    attributes = {
        "author": relation("manyToOne", "author"),
        "tags": relation("manyToMany", "author"),
        "cover": {"type": "media"},
        "pictures": {"type": "media", "multiple": True},
        "seo": {"type": "component", "component": "shared.seo", "required": True},
        "links": {"type": "component", "component": "shared.seo", "repeatable": True},
        "parts": {"type": "dynamiczone", "components": ["shared.seo"]},
        "about": {"type": "relation", "relation": "morphToOne"},
        "gone": {"type": "relation", "relation": "oneToOne", "target": "admin::user"},
    }
    text = module(
        tmp_path,
        {
            **collection("page", attributes, localized=True),
            **collection("author", {"name": STRING}),
            **component("shared.seo", {"title": STRING}),
        },
    )
    assert shape(text, "PageLinks") == (
        'author: One<"author">; tags: Many<"author">; cover: One<"plugin::upload.file">; '
        'pictures: Many<"plugin::upload.file">; seo: Always<"shared.seo">; links: Many<"shared.seo">; '
        'parts: Zone<"shared.seo">; about: OneOf<"author" | "page" | "plugin::upload.file" | '
        '"plugin::users-permissions.user">; '
        'localizations: Many<"page">;'
    )
    assert '__component: "shared.seo"' in shape(text, "PageInput")
    assert "gone" not in text


def test_enumerations_and_locales_are_unions_of_their_values(tmp_path: Path) -> None:
    colour: dict[str, Any] = {
        "type": "enumeration",
        "enum": ["red", 'a "b"'],
        "default": "red",
        "required": True,
    }
    site = "locales: {default: pt-BR, available: [en, pt-BR]}\n"
    text = module(tmp_path, {**collection("note", {"colour": colour}), "site.yaml": site})
    assert shape(text, "Note") == r'colour: "red" | "a \"b\"";'
    assert shape(text, "NoteInput") == r'colour?: "red" | "a \"b\"";'
    assert 'export type Locale = "en" | "pt-BR";' in text
    assert 'export type DefaultLocale = "pt-BR";' in text


def test_a_name_that_is_taken_is_not_given_twice(tmp_path: Path) -> None:
    text = module(
        tmp_path,
        {
            **collection("query", {}),
            **collection("promise", {}),
            **collection("shared-seo", {}),
            **collection("shared-seo-links", {}),
            **component("shared.seo", {}),
            **component("2.3d", {}),
        },
    )
    declared = re.findall(r"^(?:export )?type (\w+)", text, re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert {
        "QueryType",
        "PromiseType",
        "SharedSeoLinks",
        "SharedSeoType",
        "SharedSeoType2",
        "Type23d",
    } <= set(declared)


def test_what_a_schema_says_can_not_leave_its_comment(tmp_path: Path) -> None:
    files = collection("note", {"title": {"type": "string", "regex": "a*/ alert(1) /*\n x"}})
    text = module(tmp_path, files)
    assert "*/ alert" not in text
    assert r"a*\/ alert(1) /* x" in text


def test_every_attribute_type_and_operator_has_its_type(tmp_path: Path) -> None:
    beyond = {"relation", "media", "component", "dynamiczone", "enumeration"}
    assert set(BODY_TYPES) == set(ATTRIBUTE_TYPES) - beyond
    assert set(RESPONSE_TYPES) == set(BODY_TYPES) - {"password"}
    text = module(tmp_path, NOTE)
    assert all(f"  {name}?: " in text for name in OPERATORS)


def test_the_text_does_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    files = {
        **collection("b", {"x": relation("oneToOne", "a")}),
        **collection("a", {}),
        **component("c.d", {}),
    }
    assert module(one, files) == module(two, dict(reversed(files.items())))


# --- the command ---------------------------------------------------------------------------------


def test_without_out_the_text_goes_to_stdout(tmp_path: Path) -> None:
    text = module(tmp_path, NOTE)
    assert run("--site", str(tmp_path)).stdout == text


def test_out_is_written_once_and_checked(tmp_path: Path) -> None:
    write(tmp_path, NOTE)
    out = tmp_path / "src" / "bifolio.ts"
    site = ("--site", str(tmp_path), "--out", str(out))
    missing = run(*site, "--check")
    assert missing.exit_code == 1
    assert "the file does not exist" in missing.stderr
    assert run(*site).exit_code == 0
    written = out.stat().st_mtime_ns
    assert "up to date" in run(*site, "--check").stdout
    assert "up to date" in run(*site).stdout
    assert out.stat().st_mtime_ns == written
    write(tmp_path, collection("note", {"name": STRING}))
    old = run(*site, "--check")
    assert old.exit_code == 1
    assert re.fullmatch(
        r"bifolio: .*/src/bifolio\.ts:\d+: is out of date. Run `bifolio types --out .*`\.\n", old.stderr
    )
    assert out.stat().st_mtime_ns == written
    run(*site)
    assert run(*site, "--check").exit_code == 0


def test_what_can_not_be_done_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, NOTE)
    assert run("--site", str(tmp_path), "--check").stderr.startswith("bifolio: --check: ")
    (tmp_path / "file").touch()
    refused = run("--site", str(tmp_path), "--out", str(tmp_path / "file" / "bifolio.ts"))
    assert refused.exit_code == 1
    assert len(refused.stderr.splitlines()) == 1
    write(tmp_path, {"content-types/note.json": "{"})
    assert run("--site", str(tmp_path)).stderr.startswith("bifolio: content-types/note.json:1:2: ")


# --- the compiler --------------------------------------------------------------------------------


needs_compiler = pytest.mark.skipif(
    not shutil.which("node") or not TSC.exists(), reason="make npm installs TypeScript"
)
OPTIONS = ("--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--module", "nodenext")


def compiled(folder: Path, *files: str) -> tuple[int, str]:
    """Run the compiler. Return its exit status and its messages."""
    command = ["node", str(TSC), *OPTIONS, *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@needs_compiler
def test_the_compiler_takes_it(tmp_path: Path) -> None:
    sites = {"own": ROOT, "recorded": ROOT / "tests" / "conformance" / "site", "empty": tmp_path / "empty"}
    (sites["empty"] / "content-types").mkdir(parents=True)
    for name, root in sites.items():
        assert run("--site", str(root), "--out", str(tmp_path / f"{name}.ts")).exit_code == 0
    assert compiled(tmp_path, *(f"{name}.ts" for name in sites)) == (0, "")


@needs_compiler
def test_the_compiler_takes_what_the_page_shows(tmp_path: Path) -> None:
    shown = re.findall(r"```ts\n(.*?)```", (ROOT / "docs" / "types.md").read_text(), re.DOTALL)
    assert len(shown) == 2
    pages = {f"page{i}.ts": text for i, text in enumerate(shown)}
    write(tmp_path, {**pages, "package.json": '{"type": "module"}'})
    (tmp_path / "node_modules").symlink_to(TSC.parents[2], target_is_directory=True)
    run("--zod", "--site", str(ROOT), "--out", str(tmp_path / "bifolio.ts"))
    assert compiled(tmp_path, *pages) == (0, "")
