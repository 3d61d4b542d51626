"""The rule `unused-media`: media files to which no document refers."""

from pathlib import Path

from server.site.check.media_use import possible_file_names
from tests.growth import is_linear
from tests.site.check.sites import check, page, places

NAMES = (
    "attribute.txt",
    "link.txt",
    "sea chart.png",
    "html.txt",
    "value.txt",
    "none.txt",
    "deep/none too.txt",
    "kept.txt",
)


def test_media_files_without_a_use(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"content/uploads/{name}": b"x" for name in NAMES}
    body = "[x](/uploads/link.txt) ![y](/uploads/small_sea%20chart.png) <a href='/uploads/html.txt'>z</a>"
    files["content/pages/x.md"] = page(body, "cover: attribute.txt")
    files["content/notes/n.yaml"] = "text: see value.txt\n"
    files["content/uploads/none.txt.yaml"] = "alternativeText: none.txt\n"
    assert check(tmp_path, files) == []
    problems = check(
        tmp_path,
        {"site.yaml": "check: {rules: {unused-media: warning}, ignore: {unused-media: '*/kept.txt'}}"},
    )
    assert places(problems, "unused-media") == [
        ("uploads/deep/none too.txt", None, None),
        ("uploads/none.txt", None, None),
    ]


def test_file_names_are_found_in_linear_time() -> None:
    assert possible_file_names(".a b.cd.ef-g .h i.jpg, k.toolongext x.y.z%20.png") == {
        "b.cd.ef",
        "i.jpg",
        "x.y.z%20.png",
    }
    for piece in ("a", ".a", "a.-", ".", ".abcdefgh"):
        assert is_linear(lambda size, piece=piece: possible_file_names(piece * size + "\x00é"), 500)
