"""Tests of splitting a file into front matter and body, which together keep every byte of the file."""

import frontmatter as library
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.formats.frontmatter import YamlHandler, split_front_matter
from server.formats.text_positions import Positions
from server.formats.tree import SyntaxProblem
from server.storage.document_text import change_text

BODIES = st.lists(
    st.sampled_from(["a", "é", " ", "\t", "\n", "\r", "-", "---", "# ", "    code"]), max_size=10
).map("".join)
ENDS = st.sampled_from(["\n", "\r\n"])


@given(BODIES, ENDS, st.sampled_from(["", " ", "\t"]), st.sampled_from(["---", "..."]))
@example("---\nno: end\n---\n", "\n", "", "---")
@example("\r", "\n", "", "---")
def test_a_body_is_the_text_between_blank_line_and_last_newline(
    body: str, end: str, after: str, fence: str
) -> None:
    parts = split_front_matter(f"---{after}{end}title: x{end}{fence}{after}{end}{end}{body}{end}")
    assert parts.body == body
    assert parts.front_matter == f"title: x{end}"


@given(BODIES, ENDS)
def test_a_body_needs_no_blank_line_and_no_last_newline(body: str, end: str) -> None:
    text = f"---{end}title: x{end}---{end}b{body}b"
    assert split_front_matter(text).body == f"b{body}b"


@given(BODIES, ENDS)
def test_toml_and_json_leave_the_same_body(body: str, end: str) -> None:
    for matter in (f"+++{end}title = 'x'{end}+++{end}", f'{{"title": "x"}}{end}'):
        parts = split_front_matter(f"{matter}{end}{body}{end}")
        assert (parts.body, parts.load()) == (body, {"title": "x"})


def test_what_only_looks_like_json_is_body() -> None:
    for text in ("{/* MDX */}\n", '{"text"}', "{% raw %}", "{ }", "{title}"):
        assert split_front_matter(text).body == text.removesuffix("\n")


PIECES = st.sampled_from(
    ["---", "...", "+++", '{"a": 1', "}", "\n", "\r\n", "\r", " ", "\t", "a: b", "é", "# ", "    x"]
)


@given(
    st.sampled_from(["", "---\n", "\n", "\n---\n", "---\r\n", "--- \n", "+++\n", '{"a": {']),
    st.lists(PIECES, max_size=12).map("".join),
)
def test_no_byte_is_lost(start: str, more: str) -> None:
    text = start + more
    try:
        parts = split_front_matter(text)
    except SyntaxProblem:
        return
    assert text == parts.opening + parts.front_matter + parts.closing + parts.body_text
    assert (parts.handler is None) == (parts.opening + parts.front_matter == "")


def test_a_file_without_front_matter_is_all_body() -> None:
    assert split_front_matter("# Title\n\n---\n\nText.\n").body == "# Title\n\n---\n\nText."
    assert split_front_matter("-- -\na: b\n---\n").front_matter == ""
    assert split_front_matter("").body == ""
    assert split_front_matter("+++ x\ny\n").body == "+++ x\ny"
    assert split_front_matter("    code first\n").body == "    code first"


@pytest.mark.parametrize("blank", ["\n", "\r\n", "\n \t\n\n"])
def test_blank_lines_may_stand_above_front_matter(blank: str) -> None:
    for text in ("---\n# comment\n\ntitle: x\n---\n\nBody.\n", "+++\ntitle = 'x'\n+++\nBody.\n"):
        parts, positions = split_front_matter(blank + text), Positions()
        assert (parts.load(positions), parts.body) == ({"title": "x"}, "Body.")
        assert parts.opening + parts.front_matter + parts.closing + parts.body_text == blank + text
        assert (blank + text).split("\n")[positions["title",].line - 1].startswith("title")


def test_a_change_leaves_blank_lines_above_front_matter() -> None:
    text = "\n\n---\ntitle: x\nkind: a\n---\n\nBody.\n"
    assert change_text("a.md", text, "body", {"title": "new"}) == text.replace("x", "new")
    assert change_text("a.md", text, "body", {"body": "New."}) == text.replace("Body.", "New.")


@pytest.mark.parametrize(
    "text",
    ["\n---\n\nText.\n\n---\n", "\n---\nkey: x\n\nText.\n", "\n---\n- a\n---\n", "\n# a\n---\nb: c\n---\n"],
)
def test_a_rule_below_a_blank_line_is_no_fence(text: str) -> None:
    assert split_front_matter(text).body == text.removeprefix("\n").removesuffix("\n")
    assert split_front_matter(text).handler is None


def test_a_problem_below_blank_lines_has_the_line_of_the_file() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        split_front_matter("\n\n---\ntitle: x\nsub: a: b\n---\n").load()
    assert caught.value.line == 5


def test_a_rule_in_the_body_is_no_fence() -> None:
    parts = split_front_matter("---\ntitle: x\n---\n---\n\nBelow the rule.\n\n---\n")
    assert (parts.front_matter, parts.body) == ("title: x\n", "---\n\nBelow the rule.\n\n---")


def test_dashes_in_a_value_are_no_fence() -> None:
    parts = split_front_matter("---\ntitle: a --- b\ntext: |\n  ---\n  x\nlong: ----\n---\nBody\n")
    assert parts.load() == {"title": "a --- b", "text": "---\nx\n", "long": "----"}


@pytest.mark.parametrize("text", ["---\n---\n", "---\n---", "---\n# comment\n---\nx", "---\n\n---\n"])
def test_front_matter_may_be_empty(text: str) -> None:
    assert split_front_matter(text).load() == {}


def test_lines_are_those_of_the_file() -> None:
    positions: Positions = {}
    split_front_matter("---\ntitle: x\nlist:\n- a\n- b\n---\n").load(positions)
    assert positions == {
        ("title",): (2, 1, 8),
        ("list",): (3, 1, 0),
        ("list", 0): (4, 3, 0),
        ("list", 1): (5, 3, 0),
    }


REFUSED = {
    "not closed": ("---\ntitle: x\n\nText\n", "the front matter is not closed", 1, "add the line --- after"),
    "closed by an indented line": (
        "---\ntitle: x\n ---\n",
        "the front matter is not closed",
        1,
        "add the line",
    ),
    "a fence alone": ("---", "the front matter is not closed", 1, "add the line"),
    "TOML that is not closed": (
        '+++\ntitle = "x"\n',
        "the front matter is not closed",
        1,
        "add the line +++",
    ),
    "broken TOML": ('+++\ntitle = "x"\nsub = \'y\n+++\n', "a quote is not closed", 3, "close the"),
    "broken JSON": ('{\n"title": "x",\n}\n\nText\n', "invalid JSON: ", 2, "check the commas"),
    "a language behind the dashes": ("---toml\na = 1\n---\n", 'begins with "---toml"', 1, "write YAML"),
    "a list": (
        "---\n- a\n---\n",
        "front matter must be a mapping",
        2,
        'write it as lines such as "key: value"',
    ),
    "text": (
        "---\njust text\n---\n",
        "front matter must be a mapping",
        2,
        'write it as lines such as "key: value"',
    ),
    "broken YAML": ("---\ntitle: x\nsub: a: b\n---\n", "mapping values are not allowed", 3, "put strings"),
    "a key twice": ("---\na: 1\nb: 1\na: 2\n---\n", 'the key "a" occurs twice', 4, "remove one"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_read_is_refused_with_the_line_of_the_file(name: str) -> None:
    text, message, line, fix = REFUSED[name]
    with pytest.raises(SyntaxProblem) as caught:
        split_front_matter(text).load()
    assert message in caught.value.message
    assert caught.value.line == line
    assert caught.value.column
    assert caught.value.fix.startswith(fix)


def test_python_frontmatter_reads_through_the_handler() -> None:
    """This includes keys that break the library's own handler, and a horizontal rule at the top
    of the body.
    """
    text = "---\ncontent: 1\nhandler: 2\non: NO\n---\n---\nrest\n"
    metadata, body = library.parse(text, handler=YamlHandler())
    assert metadata == {"content": "1", "handler": "2", "on": "NO"}
    assert body == "---\nrest"
    assert YamlHandler().detect(text)
    assert not YamlHandler().detect("# Title\n")
