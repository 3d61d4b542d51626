"""Tests of changes to the text of site.yaml: one change touches only its own lines."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from server.config.settings_file import HIDDEN, change_settings_text, find_setting, mask_settings_text
from server.errors import ConflictError
from server.formats.edits import REMOVE
from server.formats.yaml.reader import read_yaml

SITE = """\
# The harbour's site.
name: 'Harbour'   # in quotes

locales: {default: en, available: [en, fr]}  # both
api:
  # Pages are small.
  page_size:
    default: 10
    max: 50   # never more
  strict_params: true
roles:
  public:
    article: [find, findOne]   # for all
  editor:
    article:
      - find
      - create  # new ones
# The end.
"""
PATHS: dict[tuple[str, ...], list[Any]] = {
    ("name",): ["Pier", "a: b", "#1", "12", REMOVE],
    ("locales", "default"): ["fr", REMOVE],
    ("locales", "available"): [["en"], ["en", "fr", "de"], REMOVE],
    ("api", "page_size", "default"): [20, REMOVE],
    ("api", "page_size", "max"): [100, REMOVE],
    ("api", "strict_params"): [False, REMOVE],
    ("api", "limits", "time"): ["4s"],
    ("events", "keep"): ["90d"],
    ("roles", "public", "article"): [["find"], ["findOne", "find", "create"]],
    ("roles", "public", "tag"): [["find"]],
    ("roles", "editor", "article"): [["find"], ["find", "create", "delete"]],
    ("roles", "guest", "article"): [["find"]],
}
# The lines that each of these paths may change, by what they contain.
OWN = {
    ("name",): "name:",
    ("locales", "default"): "locales:",
    ("locales", "available"): "locales:",
    ("api", "page_size", "default"): "    default:",
    ("api", "page_size", "max"): "    max:",
    ("api", "strict_params"): "strict_params:",
    ("roles", "public", "article"): "    article: [",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("path", PATHS)
def test_a_change_touches_only_its_own_lines(path: tuple[str, ...], newline: str) -> None:
    text = SITE.replace("\n", newline)
    for value in PATHS[path]:
        made = change_settings_text(text, {path: value})
        assert made.count("\n") == made.count(newline)
        lines, kept = made.splitlines(), SITE.splitlines()
        gone = [line for line in kept if line not in lines]
        comments = [line.partition("#")[2] for line in gone if "#" in line]
        assert all(OWN.get(path, "      - ") in line for line in gone), gone
        if value is not REMOVE and path in OWN:
            assert all(comment in made for comment in comments)
        assert change_settings_text(made, {path: value}) == made


@given(
    st.lists(
        st.sampled_from([(path, value) for path, values in PATHS.items() for value in values]), max_size=4
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_changes_change_only_what_they_name(
    changes: list[tuple[tuple[str, ...], Any]], newline: str, bom: str
) -> None:
    text = bom + SITE.replace("\n", newline)
    expected: Any = read_yaml(SITE)
    for path, value in changes:
        text = change_settings_text(text, {path: value})
        _apply(expected, path, value)
    assume(expected)
    assert text.startswith(bom)
    assert _texts(read_yaml(text.removeprefix("\ufeff"))) == _texts(expected)


def _apply(tree: Any, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    if value is REMOVE:
        tree.pop(path[-1], None)
    else:
        tree[path[-1]] = value


def _texts(tree: Any) -> Any:
    """Return a tree with texts as scalars, and without empty mappings."""
    if isinstance(tree, dict):
        inner = {key: _texts(value) for key, value in tree.items()}
        return {key: value for key, value in inner.items() if value != {}}
    if isinstance(tree, list):
        return [_texts(item) for item in tree]
    return str(tree).lower() if isinstance(tree, bool) else str(tree)


def test_a_file_is_begun_and_never_left_empty() -> None:
    assert change_settings_text("", {("name",): "Pier"}) == "name: Pier\n"
    assert change_settings_text("# mine\n", {("api", "limits", "time"): "4s"}).startswith("# mine\napi:\n")
    assert change_settings_text("name: Pier\n", {("name",): REMOVE}) == "{}\n"
    assert change_settings_text(
        "roles: {public: {tag: [find]}}\n", {("roles", "public", "tag"): REMOVE}, prune=False
    ) == ("roles: {public: {}}\n")


def test_new_permissions_are_written_on_one_line() -> None:
    text = change_settings_text(SITE, {("roles", "public", "tag"): ["find", "findOne"]})
    assert "    article: [find, findOne]   # for all\n    tag: [find, findOne]\n  editor:\n" in text
    text = change_settings_text(SITE, {("roles", "guest", "tag"): ["find"]})
    assert "      - create  # new ones\n  guest: {tag: [find]}\n" in text


def test_a_shared_value_is_written_out() -> None:
    text = "roles:\n  public: &p\n    tag: [find]\n  editor: *p\n"
    made = change_settings_text(text, {("roles", "editor", "tag"): ["create"]})
    assert read_yaml(made)["roles"] == {"public": {"tag": ["find"]}, "editor": {"tag": ["create"]}}


def test_a_broken_file_is_not_changed() -> None:
    with pytest.raises(ConflictError, match=r"site.yaml:1.*fix the file first"):
        change_settings_text("name: 'Pier\n", {("name",): "Pier"})


def test_secrets_are_masked() -> None:
    text = (
        "accounts: postgresql://a:hunter2@db/x  # ours\n"
        "api: {rate_store: redis://:hunter2@r, strict_params: true}\n"
        "webhooks:\n- name: a\n  url: https://x.org/hunter2\n- name: b\nname: Pier\n"
    )
    masked = mask_settings_text(text)
    assert "hunter2" not in masked
    assert masked.count(HIDDEN) == 4
    assert "# ours" not in masked
    assert masked.endswith("name: Pier\n")
    assert "# ours" in mask_settings_text(text, keeps_inline_comments=True)


@pytest.mark.parametrize("sent", [None, ()])
def test_comments_on_webhooks_are_masked(sent: tuple[()] | None) -> None:
    text = (
        "name: 'a #1' # ours\nwebhooks: # hunter2\n  # hunter2\n  - name: a#b # hunter2\n"
        "    url: https://x.org # hunter2\n    headers:\n      #hunter2\n      X: 'a # b' # hunter2\n"
        "      Y: [#hunter2\n        a]\n"
        "    url2: | # hunter2\n      a # b\n"
        "    secret: [ # hunter2\n      a]\n  - name: b # hunter2\n#hunter2\nlocales: {}  # ours\n"
    )
    masked = mask_settings_text(text, sent, keeps_inline_comments=True)
    assert "hunter2" not in masked
    assert masked.startswith("name: 'a #1' # ours\nwebhooks: # (hidden)\n  # (hidden)\n")
    assert masked.endswith(" # (hidden)\n# (hidden)\nlocales: {}  # ours\n")
    assert ("name: a#b # (hidden)" in masked) == (sent is not None)


def test_settings_that_are_commented_out_are_masked() -> None:
    text = (
        "# hunter2\nname: Pier  # ours\n#accounts: hunter2\nmail:\n  #  user: hunter2\n"
        "locales: {}\n  # hunter2"
    )
    for keeps in (False, True):
        masked = mask_settings_text(text, keeps_inline_comments=keeps)
        assert "hunter2" not in masked
        assert masked.count(f"# {HIDDEN}") == (4 if keeps else 5)
        assert ("# ours" in masked) == keeps
    assert mask_settings_text("# hunter2") == f"# {HIDDEN}"


def test_names_of_settings_and_entries() -> None:
    assert [
        found and found[1]
        for found in map(find_setting, ("name", "preview.article", "api", "nothing", "preview."))
    ] == [
        ("name",),
        ("preview", "article"),
        None,
        None,
        None,
    ]
