"""Property tests: a migration and its opposite leave every byte of a site as it was."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from server.service.opening import Mode, open_site
from server.site.migrations.migration import Migration
from server.site.migrations.plan import NewMigration, plan_new_migration
from server.write.context import Context
from tests.examples import examples
from tests.sites import STRING, collection, component, relation, translated, write

# for each type: its values as they are written in YAML, and in JSON
VALUES: dict[str, list[tuple[str, Any]]] = {
    "string": [("plain words", "plain words"), ("'it''s'", "it's"), ('"tab\\t"', "tab\t"), ("''", "")],
    "text": [("|\n    one\n    two", "one\ntwo\n"), (">-\n    folded\n    text", "folded text")],
    "integer": [("7", 7), ("-12", -12), ("0", 0)],
    "boolean": [("true", True), ("false", False)],
    "date": [("2024-02-29", "2024-02-29"), ("'1999-12-31'", "1999-12-31")],
    "json": [("{a: [1, {b: null}]}", {"a": [1, {"b": None}]}), ("[x, 'y']", ["x", "y"])],
    "tag": [("sea", "sea"), ("null", None), ("{documentId: sea}", {"documentId": "sea"})],
    "box": [("{label: x, size: 3}", {"label": "x", "size": 3}), ("\n    label: 'y' # z", {"label": "y"})],
}
NAMES = ("alpha", "beta", "gamma-x", "delta_1")
RETYPES = [("integer", "string"), ("boolean", "string"), ("date", "text"), ("string", "text")]
Site = tuple[dict[str, str], dict[str, str], str]


def _schema(type_: str) -> dict[str, Any]:
    if type_ == "tag":
        return relation("manyToOne", "tag")
    if type_ == "box":
        return {"type": "component", "component": "shared.box"}
    return {"type": type_}


@st.composite
def _documents(
    draw: st.DrawFn, types: dict[str, str], last: str, endings: tuple[str, ...] = ("json", "yaml", "md")
) -> dict[str, str]:
    """Return the files of some documents. If a document has a value of `last`, it comes last."""
    files = {}
    for i in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(sorted(types)), unique=True))
        names.sort(key=lambda name: name == last)
        values = [(name, *draw(st.sampled_from(VALUES[types[name]]))) for name in names]
        state = draw(st.sampled_from(["", ".draft", ".fr", ".fr.draft"]))
        ending = draw(st.sampled_from(endings))
        notes = draw(st.lists(st.sampled_from(["", "# note\n"]), min_size=9, max_size=9))
        lines = [f"{note}{name}: {text}\n" for note, (name, text, _) in zip(notes, values, strict=False)]
        if ending == "json":
            made = {name: value for name, _, value in values}
            text = json.dumps(made, indent=draw(st.sampled_from([None, 2, 3])))
        else:
            text = "".join(lines) if ending == "yaml" else f"---\n{''.join(lines)}---\nBody: x\n"
        files[f"content/pages/d{i}{state}.{ending}"] = text
    return files


def _site(
    types: dict[str, str], documents: dict[str, str], localized: bool, options: dict[str, Any] | None = None
) -> dict[str, str]:
    attributes = {name: {**_schema(type_), **(options or {})} for name, type_ in types.items()}
    if localized:
        attributes = {name: translated(attribute) for name, attribute in attributes.items()}
    weights = f"search: {{weights: {{page.{min(types)}: 3}}}}\n"
    return {
        "site.yaml": "# site\nlocales: {available: [en, fr]}\n" + weights,
        **collection("page", {"text": {"type": "richtext"}, **attributes}, localized=localized, drafts=True),
        **collection("tag", {"name": STRING}),
        **component("shared.box", {"label": STRING, "size": {"type": "integer"}}),
        **documents,
        "content/tags/sea.yaml": "name: Sea\n",
    }


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Return the files of a site, the types of its attributes by name, and the attribute that comes last."""
    types = {name: draw(st.sampled_from(sorted(VALUES))) for name in NAMES[: draw(st.integers(1, 4))]}
    last = list(types)[-1]
    return _site(types, draw(_documents(types, last)), draw(st.booleans())), types, last


def require_same(files: dict[str, str], *steps: tuple[str, dict[str, Any]]) -> None:
    """Apply migrations in memory, and require that all files are the same afterwards."""

    def act(_: None, context: Context) -> int:
        plans = [
            plan_new_migration(NewMigration(Migration(name, arguments)), context) for name, arguments in steps
        ]
        return len(plans[0].paths)

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), files)
        writes, changed = open_site(Path(folder), Mode.READ).site.preview(act, None)
    assert changed >= 2  # at least the schema and the kept migration
    assert sorted(w.path for w in writes if not w.path.startswith("migrations/")) == []


@settings(max_examples=examples(24))
@given(sites(), st.data())
def test_names(site: Site, data: st.DataObject) -> None:
    files, types, _ = site
    name = data.draw(st.sampled_from(sorted(types)))
    require_same(
        files,
        ("rename", {"attribute": f"page.{name}", "to": "new-name"}),
        ("rename", {"attribute": "page.new-name", "to": name}),
    )
    require_same(
        files,
        ("rename", {"attribute": "shared.box.label", "to": "caption"}),
        ("rename", {"attribute": "shared.box.caption", "to": "label"}),
    )


@settings(max_examples=examples(16))
@given(sites())
def test_types_and_components(site: Site) -> None:
    files, _, _ = site
    require_same(
        files,
        ("rename-type", {"type": "page", "to": "story", "plural": "stories"}),
        ("rename-type", {"type": "story", "to": "page", "plural": "pages"}),
    )
    require_same(
        files,
        ("rename-component", {"component": "shared.box", "to": "meta.case"}),
        ("rename-component", {"component": "meta.case", "to": "shared.box"}),
    )


@settings(max_examples=examples(24))
@given(st.sampled_from(RETYPES), st.booleans(), st.data())
def test_retype(pair: tuple[str, str], localized: bool, data: st.DataObject) -> None:
    old, new = pair
    types = {"alpha": "string", "beta": old}
    # In JSON, "7" stays as it is when its attribute becomes an integer, because it is a valid value.
    documents = _documents(types, "beta", ("json", "yaml", "md") if old == "string" else ("yaml", "md"))
    files = _site(types, data.draw(documents), localized)
    require_same(
        files,
        ("retype", {"attribute": "page.beta", "type": new}),
        ("retype", {"attribute": "page.beta", "type": old}),
    )


# Values that move are written anew, so they must look as Bifolio writes them.
PLAIN = {"string": [("plain words", "plain words")], "integer": [("7", 7)], "boolean": [("true", True)]}


@settings(max_examples=examples(24))
@given(st.sampled_from(sorted(PLAIN)), st.booleans(), st.data())
def test_wrap(type_: str, localized: bool, data: st.DataObject) -> None:
    types, files = {"alpha": "text", "holder": type_}, dict[str, str]()
    private = {"private": True} if data.draw(st.booleans()) else {}
    inner = {"type": type_, **(private if data.draw(st.booleans()) else {})}
    for i, ending in enumerate(data.draw(st.lists(st.sampled_from(["json", "yaml", "md"]), max_size=4))):
        [(text, value)] = PLAIN[type_]
        is_first = data.draw(st.booleans())
        made = {"alpha": "a", "holder": value} if is_first else {"holder": value}
        lines = ("alpha: a\n" if is_first else "") + f"# note\nholder: {text}\n"
        indent = data.draw(st.sampled_from([None, 2, 4]))
        texts = {"json": json.dumps(made, indent=indent), "yaml": lines, "md": f"---\n{lines}---\nText\n"}
        files[f"content/pages/d{i}.{ending}"] = texts[ending]
    files = {**_site(types, files, localized, private), **component("shared.part", {"holder": inner})}
    require_same(
        files,
        ("wrap", {"type": "page", "attributes": ["holder"], "component": "shared.part"}),
        ("unwrap", {"attribute": "page.part"}),
    )
