"""Tests of `bifolio search`, which prints hits with the paths of their files."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from tests.api.test_search import FILES
from tests.sites import write


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    write(root, FILES)
    return root


def run(root: Path, *arguments: str, colour: bool = False) -> Result:
    return CliRunner(env={"FORCE_COLOR": "1"} if colour else {}).invoke(
        main, ["search", "--site", str(root), *arguments], color=colour
    )


def test_hits_have_a_path_a_line_and_what_was_found(root: Path) -> None:
    result = run(root, "gauge", "tide")
    assert result.output.splitlines() == [
        "content/articles/tides.json:1  Reading tide tables  (article, en)",
        "    body: Two tides a day. A gauge shows slack water.",
        "1 found",
    ]
    assert result.exit_code == 0


def test_every_type_is_searched_and_drafts_where_asked(root: Path) -> None:
    assert run(root, "memo", "--paths").output == "content/memos/one.json\n"
    assert run(root, "wreck", "--paths").output == ""
    assert run(root, "wreck", "--paths", "--draft").output == "content/articles/wreck.draft.json\n"
    assert run(root, "tide", "--paths", "--type", "author").output == "content/authors/nell.json\n"
    assert run(root, "marées", "--paths", "--locale", "fr").output == "content/articles/tides.fr.json\n"


def test_matches_are_coloured(root: Path) -> None:
    assert "\x1b[33m\x1b[1mtide\x1b[0m" in run(root, "tide", colour=True).output
    assert "\x1b" not in run(root, "tide").output


def test_nothing_found_says_what_may_have_been_meant(root: Path) -> None:
    result = run(root, "harbuor")
    assert (result.output, result.exit_code) == ("nothing found\nDid you mean harbour?\n", 1)


def test_words_with_a_space_are_a_phrase(root: Path) -> None:
    assert run(root, "slack water", "--paths").output == "content/articles/tides.json\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["x", "--type", "articel"],
            '--type articel: no content type has this name. Did you mean "article"?',
        ),
        (["x", "--locale", "de"], "--locale de: the site does not have this locale. Use one of en, fr."),
        (["x" * 501], "search: must have at most 500 characters"),
        (["--", "-x"], "search: the search only excludes words. Add at least one word to search for."),
    ],
)
def test_what_can_not_be_meant_is_one_line(root: Path, arguments: list[str], message: str) -> None:
    options = [a for a in arguments if a != "--"]
    result = run(root, *(["--", *options] if "--" in arguments else options))
    assert (result.output, result.exit_code) == (f"bifolio: {message}\n", 1)


def test_a_folder_that_can_not_be_written_to_is_searched_without_an_index(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, ".bifolio/search": "no folder"})
    lines = run(tmp_path, "gauge").output.splitlines()
    assert lines[-1] == "1 found; searched without an index"
