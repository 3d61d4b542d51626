"""`bifolio types --zod`: its output. tests/clients/generated.py compiles and runs it."""

import re
from pathlib import Path

from server.config.reader import read_settings
from server.schema.load import read_content_types
from server.tools.typescript import RESPONSE_TYPES, write_typescript
from server.tools.zod import RESPONSE_SCHEMAS, write_zod_module
from tests.sites import STRING, Files, collection, component, relation, write


def module(root: Path, files: Files) -> str:
    write(root, files)
    return write_zod_module(read_content_types(root), read_settings(root))


def test_every_attribute_type_has_its_schema() -> None:
    assert set(RESPONSE_SCHEMAS) == set(RESPONSE_TYPES)


def test_the_types_are_those_of_typescript(tmp_path: Path) -> None:
    text = module(tmp_path, collection("note", {"title": STRING}))
    assert write_typescript(read_content_types(tmp_path), read_settings(tmp_path)) in text
    assert text.startswith("// Made by `bifolio types --zod` ")


def test_image_formats_have_the_names_in_the_settings(tmp_path: Path) -> None:
    settings = {"site.yaml": "media: {formats: {card: {w: 480}, to-do: {w: 1}}}\n"}
    text = module(tmp_path, {**collection("note", {"title": STRING}), **settings})
    shape = "imageFormat.extend({ size: z.null(), sizeInBytes: z.null() }).optional()"
    assert f'  large: imageFormat.optional(),\n  card: {shape},\n  "to-do": {shape},\n}})' in text


def test_media_have_placeholders_if_the_settings_say_so(tmp_path: Path) -> None:
    settings = {"site.yaml": "media: {placeholders: true}\n"}
    added = "  placeholder: z.string().nullable(),\n  color: z.string().nullable(),\n})"
    assert added not in module(tmp_path, collection("note", {"title": STRING}))
    assert added in module(tmp_path, {**collection("note", {"title": STRING}), **settings})


def test_members_and_links(tmp_path: Path) -> None:
    attributes = {
        "title": {**STRING, "required": True},
        "to-do": STRING,
        "secret": {"type": "password"},
        "__proto__": {"type": "enumeration", "enum": ["a", 'b"']},
        "next": relation("oneToOne", "note"),
        "parts": {"type": "dynamiczone", "components": []},
        "gone": {"type": "relation", "relation": "oneToOne", "target": "admin::user"},
    }
    text = module(tmp_path, {**collection("note", attributes), **component("a.b", {})})
    found = re.search(r"^export const Note = z.object\(\{\n(.*?)^\}\)", text, re.MULTILINE | re.DOTALL)
    assert found
    assert found[1].splitlines() == [
        "  ...version,",
        "  title: z.string(),",
        '  "to-do": z.string().nullable(),',
        r'  ["__proto__"]: z.literal(["a", "b\""]).nullable(),',
    ]
    assert 'next: { kind: "one", types: ["note"] },\n    parts: { kind: "zone", types: [] },\n  }' in text
    assert "gone:" not in text


def test_the_text_does_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    files = {
        **collection("b", {"x": relation("oneToOne", "a")}),
        **collection("a", {}),
        **component("c.d", {}),
    }
    assert module(tmp_path / "one", files) == module(tmp_path / "two", dict(reversed(files.items())))
