"""`bifolio check`: which problems it finds at which positions, its output, and the fixes that --fix
applies.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft4Validator, FormatChecker

from server.auth.accounts import Accounts
from server.auth.users import Users
from server.commands.cli import main
from server.problems import RULES
from server.schema.model import USER
from server.site.check.survey import survey
from server.site.site import Site
from tests.sites import STRING, Api, Files, collection, component, opened, relation, translated, write

ROOT = Path(__file__).parents[2]
MEDIA = {"type": "media", "multiple": True}
TYPES = {
    **collection(
        "page",
        {
            "title": {**STRING, "required": True},
            "slug": {"type": "uid"},
            "count": {"type": "integer"},
            "author": relation("manyToOne", "author"),
            "authors": relation("manyToMany", "author"),
            "pictures": MEDIA,
            "parts": {"type": "component", "component": "shared.part", "repeatable": True},
            "body": {"type": "richtext"},
        },
        drafts=True,
        localized=True,
    ),
    **collection("author", {"name": STRING}),
    **component("shared.part", {"by": relation("manyToOne", "author"), "label": STRING}),
    **collection("home", {"title": STRING}, single=True),
    "site.yaml": "locales: {default: en, available: [en, fr]}\n",
    "content/authors/nell.yaml": "name: Nell\n",
    "content/authors/team/ida.yaml": "name: Ida\n",
    "content/uploads/knots.txt": "knots",
}


def check(root: Path, *options: str) -> Result:
    """Run the command as in a terminal without colors."""
    arguments = ["check", "--site", str(root), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def found(root: Path, *options: str) -> list[dict[str, Any]]:
    """Return the problems from the JSON output."""
    return list(json.loads(check(root, "--format", "json", *options).stdout)["problems"])


def places(root: Path, *options: str) -> list[tuple[str, int | None, int | None, str, str]]:
    """Return the path, line, column, severity and rule of each problem."""
    names = ("path", "line", "column", "severity", "rule")
    return [tuple(problem[name] for name in names) for problem in found(root, *options)]  # type: ignore[misc]


def page(*lines: str, body: str = "Text.") -> str:
    return "---\n" + "".join(f"{line}\n" for line in lines) + f"---\n\n{body}\n"


# --- problems -----------------------------------------------------------------------------------


def test_a_sound_site(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, "content/pages/a.md": page("title: A", "author: nell")})
    done = check(tmp_path, "--strict")
    assert done.exit_code == 0
    assert re.fullmatch(r"✓ no problems; 4 files checked in \d+\.\d\d s\n", done.stdout)


# The files of a site, and its problems as (path in content/, line, column, rule). Errors have a "!".
CASES: dict[str, tuple[Files, list[tuple[str, int | None, int | None, str]]]] = {
    "no YAML": (
        {"content/pages/a.md": page("title: A: B")},
        [("pages/a.md", 2, 9, "syntax!")],
    ),
    "no JSON": ({"content/pages/a.json": '{"title":\n  "A",}'}, [("pages/a.json", 2, 6, "syntax!")]),
    "a key twice in JSON": (
        {"content/pages/a.json": '{"title": "A",\n  "title": "B"}'},
        [("pages/a.json", 2, 3, "syntax!")],
    ),
    "front matter without an end": ({"content/pages/a.md": "---\na"}, [("pages/a.md", 1, 1, "syntax!")]),
    "binary": ({"content/pages/a.md": b"a\nb\0"}, [("pages/a.md", 2, 1, "syntax!")]),
    "not UTF-8": ({"content/pages/a.md": "a\nä".encode() + b"\xc3"}, [("pages/a.md", 2, 2, "syntax!")]),
    "a value of another type": (
        {"content/pages/a.md": page("title: A", "count: many")},
        [("pages/a.md", 3, 8, "value!")],
    ),
    "a value of another type, in JSON behind tabs": (
        {"content/pages/a.json": '{\n\t"title": "A",\n\t"count": "many"\n}'},
        [("pages/a.json", 3, 11, "value!")],
    ),
    "a required value that is missing": (
        {"content/pages/a.md": page("slug: a")},
        [("pages/a.md", None, None, "option")],
    ),
    "a value that breaks an option": (
        {"content/pages/a.md": page("title: A", "slug: a b")},
        [("pages/a.md", 3, 7, "option")],
    ),
    "an unknown key": (
        {"content/pages/a.md": page("title: A", "titel: B")},
        [("pages/a.md", 3, 1, "unknown-key")],
    ),
    "an unknown key in a component": (
        {"content/pages/a.md": page("title: A", "parts:", "  - label: x", "    lable: y")},
        [("pages/a.md", 5, 5, "unknown-key")],
    ),
    "a relation to nothing": (
        {"content/pages/a.md": page("title: A", "author: nel")},
        [("pages/a.md", 3, 9, "dangling")],
    ),
    "relations to nothing, in a list, in a component": (
        {
            "content/pages/a.md": page(
                "title: A", "authors: [nell, nobody]", "parts:", "  - label: x", "    by: noone"
            )
        },
        [("pages/a.md", 3, 17, "dangling"), ("pages/a.md", 6, 9, "dangling")],
    ),
    "media that is not there": (
        {"content/pages/a.md": page("title: A", "pictures:", "  - knots.txt", "  - knot.txt")},
        [("pages/a.md", 5, 5, "dangling")],
    ),
    "one id twice": (
        {
            "content/pages/a.md": page("title: A"),
            "content/pages/b.md": page("title: B", "documentId: a"),
            "content/pages/a.yaml": "title: C\n",
        },
        [("pages/a.yaml", None, None, "duplicate-id!"), ("pages/b.md", 3, 13, "duplicate-id!")],
    ),
    "one unique value twice": (
        {
            "content/pages/a.md": page("title: A", "slug: x"),
            "content/pages/b.md": page("title: B", "slug: x"),
            "content/pages/a.fr.md": page("title: A", "slug: x"),
        },
        [("pages/b.md", 3, 7, "duplicate-value")],
    ),
    "a translation of nothing": (
        {"content/pages/a.fr.md": page("title: A")},
        [("pages/a.fr.md", None, None, "translation")],
    ),
    "a translation of a broken file": (
        {"content/pages/a.md": "---\n", "content/pages/a.fr.md": page("title: A")},
        [("pages/a.md", 1, 1, "syntax!")],
    ),
    "a translation without the id": (
        {
            "content/pages/a.md": page("documentId: x1", "title: A"),
            "content/pages/a.fr.md": page("title: A"),
        },
        [("pages/a.fr.md", None, None, "missing-id")],
    ),
    "a draft without the id": (
        {
            "content/pages/a.md": page("documentId: x1", "title: A"),
            "content/pages/a.draft.md": page("title: A"),
        },
        [("pages/a.draft.md", None, None, "missing-id")],
    ),
    "a draft that is older than what is published": (
        {
            "content/pages/a.md": page("title: A", "updatedAt: 2024-03-01T00:00:00Z"),
            "content/pages/a.draft.md": page("title: A", "updatedAt: 2024-02-01T00:00:00Z"),
            "content/pages/b.md": page("title: A", "updatedAt: 2024-03-01T00:00:00Z"),
            "content/pages/b.draft.md": page("title: A", "updatedAt: 2024-03-02T00:00:00Z"),
        },
        [("pages/a.draft.md", 3, 12, "stale-draft")],
    ),
    "names of drafts and locales that there are not": (
        {
            "content/authors/nell.draft.yaml": "name: Nell\n",
            "content/authors/nell.fr.yaml": "name: Nell\n",
            "content/pages/a.md": page("title: A"),
            "content/pages/a.de.md": page("title: A"),
            "content/pages/v1.0.md": page("title: A"),
            "content/pages/v1.md": page("title: A"),
        },
        [
            ("authors/nell.draft.yaml", None, None, "file-name"),
            ("authors/nell.fr.yaml", None, None, "file-name"),
            ("pages/a.de.md", None, None, "file-name"),
        ],
    ),
    "files that no type claims": (
        {
            "content/page/a.md": page("title: A"),
            "content/hme.yaml": "title: A\n",
            "content/pages/picture.png": b"x",
            "content/uploads/knot.txt.yaml": "caption: x\n",
        },
        [
            ("hme.yaml", None, None, "unclaimed"),
            ("page/a.md", None, None, "unclaimed"),
            ("pages/picture.png", None, None, "unclaimed"),
            ("uploads/knot.txt.yaml", None, None, "dangling"),
        ],
    ),
    "everything in one file": (
        {"content/pages/a.md": page("count: many", "authors: [nell, nobody]", "tilte: A")},
        [
            ("pages/a.md", None, None, "option"),
            ("pages/a.md", 2, 8, "value!"),
            ("pages/a.md", 3, 17, "dangling"),
            ("pages/a.md", 4, 1, "unknown-key"),
        ],
    ),
    "a relation to a document whose file is broken": (
        {"content/pages/a.md": page("title: A", "author: bad"), "content/authors/bad.yaml": "name: [\n"},
        [("authors/bad.yaml", 2, 1, "syntax!")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_problem_is_found_with_its_place(tmp_path: Path, name: str) -> None:
    files, expected = CASES[name]
    write(tmp_path, {**TYPES, **files})
    told = [(p, line, at, rule + "!" * (s == "error")) for p, line, at, s, rule in places(tmp_path)]
    assert told == [(f"content/{path}", line, at, rule) for path, line, at, rule in expected]
    assert all(problem["fix"] for problem in found(tmp_path) if problem["rule"] not in ("value", "option"))


def test_a_link_out_of_the_site_and_a_file_without_permission(tmp_path: Path) -> None:
    write(tmp_path / "site", TYPES)
    (tmp_path / "site/content/pages").mkdir()
    (tmp_path / "site/content/pages/a.md").symlink_to(tmp_path)
    assert places(tmp_path / "site") == [("content/pages/a.md", None, None, "error", "unreadable")]


def test_what_a_name_may_have_meant(tmp_path: Path) -> None:
    wrong = {
        "content/pages/a.md": page("titel: A", "author: nel", "title: A", "pictures: knot.txt"),
        "content/page/b.md": page("title: B"),
        "content/autors/c.yaml": "name: C\n",
        "content/hom.yaml": "title: A\n",
        "content/pages/aa.fr.md": page("title: A"),
    }
    write(tmp_path, {**TYPES, **wrong})
    assert [problem["fix"] for problem in found(tmp_path)] == [
        'did you mean "authors"?',
        'did you mean "home"?',
        'did you mean "content/pages"?',
        'did you mean "title"?',
        'did you mean "nell"?',
        'did you mean "knots.txt"?',
        'did you mean "a"?',
    ]


def test_documents_that_a_locale_lacks_are_told_when_asked_for(tmp_path: Path) -> None:
    files = {
        "content/pages/a.md": page("title: A"),
        "content/pages/b.md": page("title: B"),
        "content/pages/b.fr.md": page("title: B"),
        "content/pages/c.draft.md": page("title: C"),
    }
    write(tmp_path, {**TYPES, **files})
    assert places(tmp_path) == []
    (problem,) = found(tmp_path, "--translations")
    assert (problem["path"], problem["message"], problem["fix"]) == (
        "content/pages/a.md",
        "the document has no version in the locale fr",
        "add content/pages/a.fr.md",
    )


def test_a_tree_of_another_tool_keeps_its_other_files(tmp_path: Path) -> None:
    doc = collection("doc", {"title": STRING}, localized=True, files="docs/{locale}/{name}.md")
    tree = {
        "docs/en/a.md": page("title: A"),
        "docs/en/picture.png": b"x",
        "docs/en/a.mdx": page("title: A"),
        "docs/xx/a.md": page("title: A"),
    }
    write(tmp_path, {**TYPES, **doc, **tree})
    assert [p[0] for p in places(tmp_path)] == ["docs/en/a.mdx", "docs/xx/a.md"]
    assert "docs/{locale}/{name}.md" in found(tmp_path)[0]["fix"]


# --- site.yaml and schemas -----------------------------------------------------------------------

BROKEN: Files = {
    **TYPES,
    "content-types/page.json": json.dumps(
        {
            "info": {"singularName": "page", "pluralName": "pages"},
            "attributes": {"a": {"type": "strng"}, "b": {"type": "string", "min": []}},
        },
        indent=1,
    ),
    "content-types/author.json": "{",
    "site.yaml": "nmae: x\napi: {pagesize: {max: 3}, cors: {}}\n"
    "roles:\n  public: {page: [find, fnd]}\n  x: [a]\n"
    "locales: {default: '!', available: [en]}\n",
}


def test_everything_wrong_with_the_configuration_is_told(tmp_path: Path) -> None:
    write(tmp_path, BROKEN)
    assert places(tmp_path) == [
        ("content-types/author.json", 1, 2, "error", "schema"),
        ("content-types/page.json", 8, 12, "error", "schema"),
        ("content-types/page.json", 12, 4, "error", "schema"),
        ("site.yaml", 1, 1, "error", "settings"),
        ("site.yaml", 2, 7, "error", "settings"),
        ("site.yaml", 2, 27, "error", "settings"),
        ("site.yaml", 4, 25, "error", "settings"),
        ("site.yaml", 5, 3, "error", "settings"),
        ("site.yaml", 6, 20, "error", "settings"),
    ]


@pytest.mark.parametrize("format_", ["text", "json", "github", "sarif"])
def test_a_broken_configuration_is_a_problem_in_every_format(tmp_path: Path, format_: str) -> None:
    write(tmp_path, BROKEN)
    done = check(tmp_path, "--format", format_)
    assert done.exit_code == 1
    assert "strng" in done.stdout
    assert "page.json" in done.stdout


@pytest.mark.parametrize(
    ("path", "text", "rule"),
    [
        ("site.yaml", "a: [", "settings"),
        ("site.yaml", "- a", "settings"),
        ("site.yaml", b"\xff", "settings"),
        ("site.yaml", "check: {ignore: {unclaimd: [a]}}", "settings"),
        ("site.yaml", "api: {page_size: {max: .inf}}", "settings"),
        ("content-types/extra.yaml", "info: .inf", "schema"),
        ("content-types/page.json", "[]", "schema"),
        ("content-types/page.json", '{"info": 3}', "schema"),
    ],
)
def test_each_way_to_break_it(tmp_path: Path, path: str, text: str | bytes, rule: str) -> None:
    write(tmp_path, {**TYPES, path: text})
    assert [(p[0], p[4]) for p in places(tmp_path)] == [(path, rule)]


def test_types_that_do_not_fit_together(tmp_path: Path) -> None:
    attributes = {"a": relation("manyToOne", "nothing"), "b": {"type": "component", "component": "x.y"}}
    write(tmp_path, {**TYPES, **collection("note", attributes)})
    assert [(p[0], p[4]) for p in places(tmp_path)] == [("content-types/note.json", "schema")] * 2


def test_a_site_without_content_types(tmp_path: Path) -> None:
    (tmp_path / "content-types").mkdir()
    done = check(tmp_path)
    assert done.exit_code == 1
    assert "the site has no content types" in done.stdout
    assert check(tmp_path / "nothing").exit_code == 1


def test_a_role_for_a_type_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, "site.yaml": "roles:\n  public: {page: [find], pag: [find]}\n"})
    assert places(tmp_path) == [("site.yaml", 2, 26, "warning", "settings")]


# --- output -------------------------------------------------------------------------------------

ODD: Files = {
    **TYPES,
    "content/pages/a.md": page("title: A", "count: 'x, 50%: \\n'", "colour: red"),
    "content/pages/b.md": page("title: B", "author: nobody"),
}


def test_the_report_has_a_line_for_each_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, ODD)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["check"])
    assert done.exit_code == 1
    assert re.sub(r"\d+\.\d\d s", "N s", done.stdout) == (
        '✗ content/pages/a.md:3:8: count must be a whole number (found "x, 50%: \\n").'
        " Write it in digits, such as 12.\n"
        '! content/pages/a.md:4:1: api::page.page has no attribute "colour".'
        " Add the attribute to content-types/page.json, or remove the key.\n"
        '! content/pages/b.md:3:9: author: the document "nobody" of type api::author.author does not exist.'
        " Fix the id, or remove it.\n"
        "\n"
        "✗ 1 error and 2 warnings in 2 files; 5 files checked in N s\n"
    )


def test_a_cause_with_many_problems_is_told_once_with_three_examples(tmp_path: Path) -> None:
    many = {f"content/pages/{i}.md": page("title: A", "colour: red", "size: 3") for i in range(5)}
    lost = {f"content/pages/x{i}.md": page("title: A", f"author: nobody-{i}") for i in range(4)}
    write(tmp_path, {**TYPES, **many, **lost, "content/pages/one.md": page("title: A", "count: many")})
    shown = check(tmp_path).stdout.replace(f"{tmp_path}/", "")
    told = re.sub(r"\d+\.\d\d s", "N s", shown)
    assert told == (
        "! 10 times: unknown attributes of api::page.page: colour (5), size (5)\n"
        '    content/pages/0.md:3:1: api::page.page has no attribute "colour"\n'
        '    content/pages/1.md:3:1: api::page.page has no attribute "colour"\n'
        '    content/pages/2.md:3:1: api::page.page has no attribute "colour"\n'
        "    and 7 more\n"
        "  Add the attributes to content-types/page.json, or set options.otherKeys there to serve all "
        "other keys.\n"
        "\n"
        "! 4 times: author: the document … of type api::author.author does not exist\n"
        '    content/pages/x0.md:3:9: author: the document "nobody-0" of type api::author.author does '
        "not exist\n"
        '    content/pages/x1.md:3:9: author: the document "nobody-1" of type api::author.author does '
        "not exist\n"
        '    content/pages/x2.md:3:9: author: the document "nobody-2" of type api::author.author does '
        "not exist\n"
        "    and 1 more\n"
        '  Add the missing targets, or change the target of "author" in content-types/page.json.\n'
        "\n"
        '✗ content/pages/one.md:3:8: count must be a whole number (found "many").'
        " Write it in digits, such as 12.\n"
        "\n"
        "✗ 1 error and 14 warnings in 10 files; 13 files checked in N s\n"
        "  Run bifolio check --all to list each of them.\n"
    )
    every = check(tmp_path, "--all").stdout
    assert (every.count("has no attribute"), every.count('the document "')) == (10, 4)
    assert "--all" not in every
    assert len(found(tmp_path)) == 15


@pytest.mark.parametrize(
    ("files", "sentence", "mend"),
    [
        (
            {f"content/pages/{i}.md": page(f"title: A {i}", "count: many") for i in range(4)},
            'count must be a whole number (found "many")',
            'Correct each value, or change the type of "count" in content-types/page.json.',
        ),
        (
            {f"content/pages/{i}.md": page("title: A", f"count: x{i}0") for i in range(4)},
            "count must be a whole number (found …)",
            'Correct each value, or change the type of "count" in content-types/page.json.',
        ),
        (
            {f"content/pages/{i}.md": page("title: A", "titel: B") for i in range(4)},
            'api::page.page has no attribute "titel"',
            'Did you mean "title"?',
        ),
        (
            {f"content/pages/{i}.fr.md": page("title: A") for i in range(4)},
            "the document … is missing in the default locale (en)",
            "Add these versions, or list the files under check.ignore.translation in site.yaml.",
        ),
        (
            {f"content/pages/{i}.md": page("title: A", *["# more"] * i, "title: B") for i in range(4)},
            "the key … occurs again on line …; only its last value is served",
            "Run bifolio check --fix to fix them all.",
        ),
    ],
)
def test_a_cause_says_what_mends_all_of_it(tmp_path: Path, files: Files, sentence: str, mend: str) -> None:
    write(tmp_path, {**TYPES, **files})
    lines = check(tmp_path).stdout.splitlines()
    assert re.sub(r"^. 4 times: ", "", lines[0]) == sentence
    assert lines[5].strip() == mend


def test_a_missing_type_is_not_taken_for_another(tmp_path: Path) -> None:
    types = collection("page", {"author": relation("manyToOne", "author")})
    write(tmp_path, {**types, **collection("home", {"title": STRING}, single=True)})
    shown = check(tmp_path).stdout
    assert 'unknown content type "api::author.author"' in shown
    assert "did you mean" not in shown


def test_warnings_fail_only_where_asked_to(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, "content/pages/a.md": page("title: A", "colour: red")})
    assert check(tmp_path).exit_code == 0
    assert check(tmp_path, "--strict").exit_code == 1


def test_colours_are_for_terminals_and_for_those_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, ODD)
    assert "\x1b[" not in check(tmp_path).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m✗ \x1b[0m" in check(tmp_path).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in check(tmp_path).stdout


def test_what_is_in_a_file_can_not_drive_a_terminal(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, "content/pages/a.yaml": 'title: A\n"\\e]0;x\\a\\u202e": 1\n'})
    done = check(tmp_path)
    assert "\x1b" not in done.stdout
    assert 'has no attribute "\\x1b]0;x\\x07\\u202e"' in done.stdout


def test_annotations_of_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a site, with: signs", ODD)
    monkeypatch.chdir(tmp_path)
    done = check(Path("a site, with: signs"), "--format", "github")
    assert done.exit_code == 1
    path = "a site%2C with%3A signs/content/pages"
    assert done.stdout.splitlines() == [
        f"::error file={path}/a.md,line=3,col=8,title=bifolio%3A value::"
        'count must be a whole number (found "x, 50%25: \\n"). Write it in digits, such as 12.',
        f"::warning file={path}/a.md,line=4,col=1,title=bifolio%3A unknown-key::"
        'api::page.page has no attribute "colour". Add the attribute to content-types/page.json, or '
        "remove the key.",
        f"::warning file={path}/b.md,line=3,col=9,title=bifolio%3A dangling::"
        'author: the document "nobody" of type api::author.author does not exist. Fix the id, or remove it.',
    ]


def test_a_sound_site_has_no_annotations_and_an_empty_log(tmp_path: Path) -> None:
    write(tmp_path, TYPES)
    assert check(tmp_path, "--format", "github").stdout == ""
    assert json.loads(check(tmp_path, "--format", "sarif").stdout)["runs"][0]["results"] == []


SARIF_SCHEMA = json.loads((Path(__file__).parent / "sarif/sarif-2.1.0-rtm.5.json").read_text())
URI = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")


def wrong_in(log: Any) -> list[str]:
    """Return what is wrong with a SARIF log according to the schema."""
    formats = FormatChecker(())
    for name in ("uri", "uri-reference"):
        formats.checks(name)(lambda value: not isinstance(value, str) or URI.fullmatch(value) is not None)
    validator = Draft4Validator(SARIF_SCHEMA, format_checker=formats)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(log)]


@pytest.mark.parametrize("name", CASES)
def test_sarif_is_valid_and_says_the_same(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ä site"
    write(root, {**TYPES, **CASES[name][0]})
    monkeypatch.chdir(tmp_path)
    log = json.loads(check(root, "--format", "sarif").stdout)
    assert wrong_in(log) == []
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    for result, problem in zip(run["results"], found(root), strict=True):
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == problem["rule"]
        assert result["level"] == problem["severity"]
        (location,) = (each["physicalLocation"] for each in result["locations"])
        assert location["artifactLocation"]["uri"] == f"%C3%A4%20site/{problem['path']}"
        assert location["region"]["startLine"] == (problem["line"] or 1)


def test_the_schema_of_sarif_finds_mistakes(tmp_path: Path) -> None:
    write(tmp_path, ODD)
    log = json.loads(check(tmp_path, "--format", "sarif").stdout)
    assert wrong_in(log) == []
    result = log["runs"][0]["results"][0]
    result["level"] = "fatal"
    result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = "a b"
    result["colour"] = "red"
    del log["runs"][0]["tool"]["driver"]["name"]
    assert len(wrong_in(log)) == 5


def test_a_site_elsewhere_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "site", ODD)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    log = json.loads(check(Path("../site"), "--format", "sarif").stdout)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": (tmp_path / "site/content/pages/a.md").as_uri()}


# --- options to ignore problems -----------------------------------------------------------------


def test_warnings_that_are_meant_to_be_are_left_out_and_errors_never(tmp_path: Path) -> None:
    ignore = (
        "check: {ignore: {unclaimed: [content/README.md], unknown-key: 'content/pages/*', value: ['*']}}\n"
    )
    files = {
        "content/README.md": "For editors.\n",
        "content/pages/2024/a.md": page("title: A", "colour: red"),
        "content/pages/b.md": page("title: B", "count: many"),
        "content/authors/c.yaml": "colour: red\n",
    }
    write(tmp_path, {**TYPES, **files, "site.yaml": f"{TYPES['site.yaml']}{ignore}"})
    assert [(p[0], p[4]) for p in places(tmp_path)] == [
        ("content/authors/c.yaml", "unknown-key"),
        ("content/pages/b.md", "value"),
    ]


# --- fixing -------------------------------------------------------------------------------------

# A file before and after --fix, compared byte by byte.
FIXED: dict[str, tuple[str, str, str]] = {
    "in front matter": (
        "content/pages/a.md",
        "---\n# first\ntitle:   A   # the title\nauthor:  '/nell'  # her\n"
        'authors:\n- team/ida # and\n- ../authors/nell.yaml\n- "nobody"\n'
        "pictures: [ /uploads/knots.txt,content/uploads/knots.txt ]\n---\n\n\n   Text.  \n\n",
        "---\n# first\ntitle:   A   # the title\nauthor:  'nell'  # her\n"
        'authors:\n- team--ida # and\n- nell\n- "nobody"\n'
        "pictures: [ knots.txt,knots.txt ]\n---\n\n\n   Text.  \n\n",
    ),
    "with other line ends and no end of the last line": (
        "content/pages/a.yaml",
        "title: A\r\nauthor: authors/nell.yaml\r\ncount: 1",
        "title: A\r\nauthor: nell\r\ncount: 1",
    ),
    "in JSON": (
        "content/pages/a.json",
        '{"title":"A",\n\n  "authors": ["nell", "content/authors/team/ida"],"count":1}',
        '{"title":"A",\n\n  "authors": ["nell", "team--ida"],"count":1}',
    ),
    "in a component": (
        "content/pages/a.yaml",
        "title: A\nparts:\n  - label: x   # one\n    by: authors/nell\n\n  - label: y\n    by: nell\n",
        "title: A\nparts:\n  - label: x   # one\n    by: nell\n\n  - label: y\n    by: nell\n",
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_paths_become_ids_and_every_other_byte_stays(tmp_path: Path, name: str) -> None:
    path, before, after = FIXED[name]
    write(tmp_path, {**TYPES, path: before})
    check(tmp_path, "--fix", "--dry-run")
    assert (tmp_path / path).read_bytes().decode() == before
    done = check(tmp_path, "--fix")
    assert "✓" in done.stdout
    assert (tmp_path / path).read_bytes().decode() == after
    again = check(tmp_path, "--fix")
    assert "→" not in again.stdout
    assert (tmp_path / path).read_bytes().decode() == after


def test_missing_ids_are_written(tmp_path: Path) -> None:
    files = {
        "content/pages/a.md": page("title: A", "documentId: x1", "author: nell"),
        "content/pages/a.fr.md": page("title: A # fr"),
        "content/pages/a.draft.md": "---\ntitle: A\n---\n",
    }
    write(tmp_path, {**TYPES, **files})
    done = check(tmp_path, "--fix", "--strict")
    assert done.exit_code == 0
    assert done.stdout.count("✓ documentId: x1") == 2
    assert (tmp_path / "content/pages/a.fr.md").read_text() == page("title: A # fr", "documentId: x1")
    site = Site(tmp_path)
    site.load()
    assert {key[0] for key in site.state.snapshot.tables["api::page.page"].versions} == {"x1"}


def test_programs_are_told_what_was_fixed(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, "content/pages/a.md": page("title: A", "authors: [/nell]")})
    told = json.loads(check(tmp_path, "--fix", "--format", "json").stdout)
    fixed = {"path": "content/pages/a.md", "key": "authors.0", "before": "/nell", "after": "nell"}
    assert (told["fixed"], told["problems"]) == ([fixed], [])


def test_what_is_certainly_mistyped_is_fixed(tmp_path: Path) -> None:
    text = page("title: A", "author: NELL # who else", "authors: [nlel]", "pictures: [Knots.txt]")
    write(tmp_path, {**TYPES, "content/pages/a.md": text})
    check(tmp_path, "--fix")
    fixed = page("title: A", "author: nell # who else", "authors: [nell]", "pictures: [knots.txt]")
    assert (tmp_path / "content/pages/a.md").read_text() == fixed
    write(tmp_path, {"content/authors/nell.yaml": "name: [", "content/pages/a.md": page("author: nell")})
    check(tmp_path, "--fix")
    assert (tmp_path / "content/pages/a.md").read_text() == page("author: nell")


SITE = "name: Tides  # ours\nlocals: {default: en, available: [en, fr]}\nAPI:\n  page-size: {deafult: 10}\n"
WORD = """{
  "knid": "collectionType",
\t"info": {"singularName": "word", "pluralName": "words"},
  "options": {"draftAndPublsih": true},
  "attributes": {
    "title": {"type": "String", "requierd": true},
    "kind": {"type": "enumeration", "enum": ["noun", "verb", "old-verb"]}
  }
}
"""


def test_mistyped_words_of_the_configuration_are_fixed(tmp_path: Path) -> None:
    write(tmp_path, {"site.yaml": "\ufeff" + SITE, "content-types/word.json": WORD})
    (tmp_path / "content-types/word.json").chmod(0o640)
    fixes = [(problem["line"], problem["fix"]) for problem in found(tmp_path)]
    fixed = ((3, "api"), (6, "string"), (6, "required"))
    assert {(line, f'--fix changes it to "{word}"') for line, word in fixed} <= {*fixes}
    done = check(tmp_path, "--fix", "--dry-run").stdout
    assert "-API:\n" in done
    assert (tmp_path / "content-types/word.json").read_text() == WORD
    done = check(tmp_path, "--fix").stdout
    assert "✓ API → api\n" in done
    assert "✓ attributes.title.type: String → string\n" in done
    # It can be corrected only after the keys above it have been corrected.
    assert "✓ api.page_size.deafult → default\n" in done
    assert (tmp_path / "content-types/word.json").read_text() == (
        WORD.replace("knid", "kind").replace("Publsih", "Publish").replace("requierd", "required")
        .replace("String", "string")
    )  # fmt: skip
    assert (tmp_path / "content-types/word.json").stat().st_mode & 0o777 == 0o640
    wanted = SITE.replace("API", "api").replace("page-size", "page_size").replace("deafult", "default")
    # `locals` is not corrected, because it is not clear what was meant.
    assert (tmp_path / "site.yaml").read_text() == "\ufeff" + wanted


def test_a_key_that_is_there_already_is_not_written_twice(tmp_path: Path) -> None:
    text = WORD.replace('"knid"', '"kind": "collectionType", "Kind"').replace("String", "string")
    write(tmp_path, {"content-types/word.json": text})
    check(tmp_path, "--fix")
    assert (
        '"kind": "collectionType", "Kind": "collectionType"'
        in (tmp_path / "content-types/word.json").read_text()
    )


def test_a_mistyped_value_of_an_enumeration_is_fixed(tmp_path: Path) -> None:
    word = {"content-types/word.json": WORD.replace("String", "string").replace("requierd", "required")}
    text = "---\ntitle: A # a\nkind: 'Noun'   # which\n---\n"
    files = {
        "content/words/a.md": text,
        "content/words/b.json": '{"title": "B", "kind": "Old Verb"}',
        "content/words/c.md": "---\ntitle: C\nkind: adverb\n---\n",
    }
    write(tmp_path, {**word, **files})
    assert len(re.findall('--fix changes it to "(noun|old-verb)"', check(tmp_path).stdout)) == 2
    check(tmp_path, "--fix")
    assert (tmp_path / "content/words/a.md").read_text() == text.replace("Noun", "noun")
    assert json.loads((tmp_path / "content/words/b.json").read_text())["kind"] == "old-verb"
    assert (tmp_path / "content/words/c.md").read_text() == files["content/words/c.md"]


def test_what_is_not_certain_is_left(tmp_path: Path) -> None:
    files = {
        "content/pages/a.md": page("title: A", "author: nel", "titel: B", "pictures: [knot.txt]"),
        "content/pages/b.md": page("documentId: one", "title: B"),
        "content/pages/b.fr.md": page("documentId: two", "title: B"),
        "content/pages/b.draft.md": page("title: B"),
    }
    write(tmp_path, {**TYPES, **files})
    assert "✓ " not in check(tmp_path, "--fix").stdout
    assert {path: (tmp_path / path).read_text() for path in files} == files


def test_a_tree_of_another_tool_is_not_changed(tmp_path: Path) -> None:
    doc = collection(
        "doc", {"title": STRING, "author": relation("manyToOne", "author")}, files="docs/{name}.md"
    )
    text = page("title: A", "author: authors/nell.yaml")
    write(tmp_path, {**TYPES, **doc, "docs/a.md": text})
    check(tmp_path, "--fix")
    assert (tmp_path / "docs/a.md").read_text() == text
    assert [p[4] for p in places(tmp_path)] == ["dangling"]


@pytest.mark.parametrize("site", [".", "../tides"])
def test_keys_of_settings_and_schemas_are_fixed_in_a_site_by_its_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str
) -> None:
    root = tmp_path / "tides"
    described = collection("note", {"text": {"type": "string", "required": True}})
    mistyped = {path: text.replace("required", "requierd") for path, text in described.items()}
    write(root, {"site.yaml": "rolse: {}\n", **mistyped})
    monkeypatch.chdir(root)
    shown = CliRunner().invoke(main, ["check", "--fix", "--dry-run", "--site", site]).stdout
    assert "-rolse: {}\n+roles: {}\n" in shown
    CliRunner().invoke(main, ["check", "--fix", "--site", site])
    assert (root / "site.yaml").read_text() == "roles: {}\n"
    assert "requierd" not in (root / "content-types/note.json").read_text()
    (root / "content-types/note.json").write_text(mistyped["content-types/note.json"])
    shown = CliRunner().invoke(main, ["check", "--fix", "--dry-run", "--site", site]).stdout
    assert '"requierd": true\n+' in shown


def test_a_dry_run_shows_a_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {**TYPES, "content/pages/a.md": page("title: A", "author: authors/nell")})
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["check", "--fix", "--dry-run"]).stdout
    assert "--- content/pages/a.md\n" in shown
    assert "-author: authors/nell\n+author: nell\n" in shown


def test_a_file_that_can_not_be_changed_holds_up_no_other(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, "content/pages/a.md": page("title: A", "author: authors/nell")})
    (tmp_path / "content/pages/a.md").chmod(0o444)
    done = check(tmp_path, "--fix")
    assert done.exit_code == 1
    assert done.stderr.startswith("bifolio: --fix: ")
    assert "Nothing was changed" in done.stderr


# --- this repository -----------------------------------------------------------------------------


def test_the_site_of_this_repository_is_sound(tmp_path: Path) -> None:
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "site.yaml", tmp_path)
    done = check(tmp_path, "--strict")
    assert done.exit_code == 0, done.stdout


def test_the_hooks_for_pre_commit_run_a_command_that_there_is() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["bifolio-check", "bifolio-check-changed"]
    paths = ["content/articles/a.md", "src/docs/a.mdx", "site.yaml", "content-types/a.json", "a/b.yml"]
    for hook in hooks:
        command, *arguments = hook["entry"].split()
        assert (command, hook["language"]) == ("bifolio", "python")
        assert CliRunner().invoke(main, [*arguments, "--help"]).exit_code == 0
        assert hook["pass_filenames"] is False
        assert all(re.search(hook["files"], path) for path in paths)


# --- users -----------------------------------------------------------------------------------------

MEMO = {
    **collection("memo", {"by": {"type": "relation", "relation": "manyToMany", "target": USER}}),
    "content/memos/one.yaml": "by:\n  - nobody\n",
}


def test_relations_to_users_need_the_accounts_database(tmp_path: Path) -> None:
    write(tmp_path, MEMO)
    result = check(tmp_path, "--strict")
    assert result.exit_code == 0
    assert "1 relation to users could not be checked" in result.stderr
    assert not (tmp_path / ".bifolio/accounts.db").exists()
    write(tmp_path, {"site.yaml": "accounts: postgresql://nobody@127.0.0.1:1/none\n"})
    assert "could not be checked: the accounts database can't be used" in check(tmp_path).stderr


def test_a_user_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    ann = Users(accounts).create("ann", "ann@x.org", "secret12", role="authenticated", confirmed=True)
    accounts.close()
    write(tmp_path, {**MEMO, "content/memos/one.yaml": f"by:\n  - {ann.document_id}\n  - nobody\n"})
    (problem,) = found(tmp_path)
    assert (problem["path"], problem["line"], problem["rule"]) == ("content/memos/one.yaml", 3, "dangling")
    assert problem["message"] == f'by: the document "nobody" of type {USER} does not exist'
    assert check(tmp_path).stderr == ""


def test_a_role_that_nobody_has_by_its_name_is_told(tmp_path: Path) -> None:
    roles = "".join(
        f"  {role}: {{page: [find]}}\n" for role in ("publik", "Autenticated", "editor", "publisher")
    )
    write(tmp_path, {**TYPES, "site.yaml": f"roles:\n{roles}"})
    assert [(p["line"], p["column"], p["message"], p["fix"]) for p in found(tmp_path)] == [
        (
            2,
            3,
            '"publik" is not a built-in role: it applies only to users to whom you assign it',
            'did you mean "public"?',
        ),
        (
            3,
            3,
            '"Autenticated" is not a built-in role: it applies only to users to whom you assign it',
            'did you mean "authenticated"?',
        ),
    ]


def test_locales_that_differ_in_what_they_share(tmp_path: Path) -> None:
    note = collection(
        "note",
        {"title": translated(STRING), "rank": "integer", "tags": "json", "tags2": "json"},
        localized=True,
        drafts=True,
    )
    files = {
        "site.yaml": "locales: {default: en, available: [en, fr, de]}\n",
        "content/notes/a.md": page("title: A", "rank: 1", "tags: [x]"),
        "content/notes/a.fr.md": page("title: A fr", "rank: 2", "tags: [x]"),
        "content/notes/a.de.md": page("title: A de", "tags: [x]", "rank:"),
        "content/notes/a.fr.draft.md": page("title: A fr", "rank: 3"),
        "content/notes/b.fr.md": page("title: B", "rank: 1"),
        "content/notes/b.de.md": page("title: B", "tags: [y]", "rank: 1"),
    }
    write(tmp_path, {**note, **files})
    told = [(p["path"][14:], p["line"], p["message"]) for p in found(tmp_path) if p["rule"] == "shared"]
    share = "must be the same in all locales, but"
    assert told == [
        ("a.de.md", None, f"rank {share} is missing here and present in content/notes/a.md"),
        ("a.fr.md", 3, f"rank {share} differs from the value in content/notes/a.md"),
        ("b.de.md", 3, f"tags {share} differs from the value in content/notes/b.fr.md"),
    ]


def test_a_markdown_file_without_its_opening_dashes(tmp_path: Path) -> None:
    article = collection(
        "article", {"title": {"type": "string", "required": True}, "body": {"type": "richtext"}}
    )
    bare, empty = "title: Fog\n---\n\nText.\n", "---\nbody: Text.\n---\n"
    write(tmp_path, {**article, "content/articles/bare.md": bare, "content/articles/empty.md": empty})
    hints = {p.path: (p.message, p.fix) for p in survey(tmp_path, lambda: opened(tmp_path)).problems}
    hint = "the file has no front matter; its first line should be ---"
    assert hints["content/articles/bare.md"] == ("title: is required", hint)
    assert hints["content/articles/empty.md"] == ("title: is required", "")


# --- duplicate keys -----------------------------------------------------------------------------

TWICE = page("title: Old  # first", "slug: a", "title: New")


def test_a_key_that_stands_twice_is_served_with_its_last_value(tmp_path: Path) -> None:
    write(tmp_path, {**TYPES, "content/pages/a.md": TWICE})
    (problem,) = found(tmp_path)
    assert (problem["line"], problem["column"], problem["rule"]) == (2, 1, "repeated-key")
    assert problem["message"] == 'the key "title" occurs again on line 4; only its last value is served'
    assert problem["fix"] == "--fix removes this occurrence"
    api = Api.of(opened(tmp_path))
    assert api.get("/api/pages/a").data["title"] == "New"
    assert api.put("/api/pages/a", {"count": 3}).data["title"] == "New"
    lines = (tmp_path / "content/pages/a.md").read_text().splitlines()
    assert [line for line in TWICE.splitlines() if line not in lines] == []
    assert "count: 3" in lines


def test_the_earlier_of_two_keys_is_removed_in_trees_of_other_tools_as_well(tmp_path: Path) -> None:
    doc = collection("doc", {"title": STRING}, files="docs/{name}.md")
    toml = '+++\ntitle = "Old"\ntitle = "New"\n+++\n'
    write(tmp_path, {**TYPES, **doc, "docs/a.md": TWICE, "docs/b.md": toml, "content/pages/a.md": TWICE})
    shown = check(tmp_path, "--fix", "--dry-run").stdout
    assert shown.count("-title: Old  # first\n") == 2
    done = check(tmp_path, "--fix")
    assert "✓ title: removed from line 2; the last one stays" in done.stdout
    assert (tmp_path / "content/pages/a.md").read_text() == TWICE.replace("title: Old  # first\n", "")
    assert (tmp_path / "docs/a.md").read_text() == TWICE.replace("title: Old  # first\n", "")
    assert (tmp_path / "docs/b.md").read_text() == '+++\ntitle = "New"\n+++\n'
    assert [problem["rule"] for problem in found(tmp_path)] == ["unknown-key"]


def test_a_key_that_stands_twice_is_fixed_with_what_else_is_wrong_in_its_file(tmp_path: Path) -> None:
    text = page("title: Old", "author: /authors/nell", "title: New", "authors: [nell]", "authors: [/ida]")
    write(tmp_path, {**TYPES, "content/authors/ida.yaml": "name: Ida\n", "content/pages/a.md": text})
    told = json.loads(check(tmp_path, "--fix", "--format", "json").stdout)
    assert {"path": "content/pages/a.md", "key": "title", "before": "Old", "after": None} in told["fixed"]
    fixed = page("author: nell", "title: New", "authors: [ida]")
    assert (tmp_path / "content/pages/a.md").read_text() == fixed
    assert told["problems"] == []


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("a.md", "---\ntitle: A\ndraft: true\n---\n", '"draft: true"'),
        ("a.md", '+++\ntitle = "A"\ndraft = true\n+++\n', '"draft = true"'),
        ("a.toml", 'title = "A"\ndraft = true\n', '"draft = true"'),
        ("a.json", '{"title": "A", "draft": true}', '"draft": true'),
    ],
)
def test_a_draft_of_a_type_without_drafts_has_one_cure(
    tmp_path: Path, path: str, text: str, said: str
) -> None:
    types = collection("post", {"title": STRING, "body": "richtext"})
    write(tmp_path, {**types, "site.yaml": "", f"content/posts/{path}": text})
    (problem,) = found(tmp_path)
    assert problem["rule"] == "draft"
    assert (
        problem["message"] == f"{said} marks the document as a draft, but the document is served as published"
    )
    assert problem["fix"] == (
        "in content-types/post.json, set options.draftAndPublish to true, and options.draftWhen to "
        '{"draft": true}'
    )


def test_a_mistyped_target_is_the_fault_of_its_own_schema_only(tmp_path: Path) -> None:
    types = {
        **collection("author", {"posts": relation("oneToMany", "post", mappedBy="author")}),
        **collection("post", {"author": relation("manyToOne", "auhtor", inversedBy="posts")}),
    }
    write(tmp_path, {**types, "site.yaml": ""})
    (problem,) = found(tmp_path)
    assert problem["path"] == "content-types/post.json"
    assert problem["message"] == 'unknown content type "api::auhtor.auhtor"'


def test_a_value_of_the_wrong_kind_in_a_schema_says_which_is_right(tmp_path: Path) -> None:
    write(tmp_path, {**collection("post", {"title": {**STRING, "required": "yes"}}), "site.yaml": ""})
    (problem,) = found(tmp_path)
    assert problem["message"] == 'required of attribute "title" must be true or false (found "yes")'
    assert problem["fix"] == ""


def test_wrong_indentation_of_settings_is_named_as_a_cause(tmp_path: Path) -> None:
    write(tmp_path, {**collection("post", {"title": STRING}), "site.yaml": "name: A\n  api: {}\n"})
    (problem,) = found(tmp_path)
    assert problem["fix"] == "put strings that contain a colon in quotes, or check the indentation"
