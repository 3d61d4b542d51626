"""The sections `urls` and `feeds` of site.yaml."""

from pathlib import Path

import pytest

from server.config.reader import survey_settings
from tests.sites import STRING, collection, load, write

TYPES = {
    **collection(
        "note", {"slug": {"type": "uid"}, "on": "date", "hidden": {"type": "string", "private": True}}
    ),
    **collection("memo", {"title": STRING}),
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("urls: {note: /notes}", "urls.note must be a URL, and its host can't be a placeholder"),
        ("urls: {note: 'https://{slug}.org/'}", "urls.note must be a URL"),
        ("urls: {note: 'https://e.org/{slug'}", "urls.note must be a URL"),
        ("urls: {note: 'https://e.org/#{slug}'}", "urls.note must be a URL"),
        ("urls: {note: 'javascript:alert(1)'}", "urls.note must be a URL"),
        ("urls: {note: {en: 'x'}}", "urls.note.en must be a URL"),
        ("urls: {upload: 'https://e.org/{slug}'}", "urls.upload can't contain placeholders"),
        ("urls: {upload: {en: 'https://e.org'}}", "urls.upload must be a URL"),
        ("feeds: {'a/b': {type: note}}", '"a/b" is not a valid name for a feed'),
        ("feeds: {news: {}}", "feeds.news.type is missing"),
        ("feeds: {news: {type: note, titel: x}}", 'unknown key "feeds.news.titel". Did you mean "title"?'),
        ("feeds: {news: {type: note, item: {body: x}}}", 'unknown key "feeds.news.item.body"'),
        ("feeds: {news: {type: note, item: {title: a b}}}", "feeds.news.item.title must be the name of an"),
        ("feeds: {news: {type: note, limit: 501}}", "feeds.news.limit must not be greater than 500"),
        ("feeds: {news: {type: note, link: x}}", "feeds.news.link must be a URL"),
        (
            "feeds: {news: {type: [note, memo], sort: slug}}",
            "feeds.news.sort can't be used with more than one type",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, {"site.yaml": text})
    [error] = survey_settings(tmp_path)[1]
    assert str(error).startswith("site.yaml:1:")
    assert message in str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("urls: {nite: 'https://e.org/'}", 'unknown content type "nite" in urls. Did you mean "note"?'),
        (
            "urls: {note: 'https://e.org/{slgu}'}",
            'unknown placeholder "{slgu}" in urls.note. Did you mean "slug"?',
        ),
        ("urls: {note: 'https://e.org/{hidden}'}", 'unknown placeholder "{hidden}" in urls.note'),
        ("urls: {note: 'https://e.org/{slug.year}'}", 'unknown placeholder "{slug.year}" in urls.note'),
        ("urls: {note: {fr: 'https://e.org/'}}", 'unknown locale "fr" in urls.note'),
        ("feeds: {news: {type: nite}}", 'unknown content type "nite" in feeds.news. Did you mean "note"?'),
        ("feeds: {news: {type: memo}}", "feeds.news is empty for memo, because urls.memo is missing"),
        ("feeds: {news: {type: note, locale: fr}}", 'unknown locale "fr" in feeds.news'),
        ("feeds: {news: {type: note, item: {title: slgu}}}", 'note has no attribute "slgu"'),
        (
            "feeds: {news: {type: memo}}",
            "feeds.news contains no memo documents: the public role lacks the find permission",
        ),
        ("llms: {types: nite}", 'unknown content type "nite" in llms.types. Did you mean "note"?'),
        (
            "llms: {types: [memo]}",
            "/llms.txt contains no memo documents: the public role lacks the find permission",
        ),
    ],
)
def test_an_unknown_name_is_a_warning(tmp_path: Path, text: str, message: str) -> None:
    site = load(tmp_path, {**TYPES, "site.yaml": text})
    assert [problem for problem in site.problems if message in str(problem)], site.problems


@pytest.mark.parametrize(
    "text",
    [
        "feeds:\n  news:\n    type:\n      - note\n      - nite\n",
        "llms:\n  types:\n    - note\n    - note\n    - nite\n",
        "feeds:\n  news:\n    type: note\n    locale: [en,\n      fr]\n",
    ],
)
def test_a_warning_names_the_line_of_the_item(tmp_path: Path, text: str) -> None:
    site = load(tmp_path, {**TYPES, "site.yaml": text})
    assert 5 in [problem.line for problem in site.problems if "unknown" in problem.message], site.problems


def test_good_settings_have_no_warnings(tmp_path: Path) -> None:
    text = """
roles: {public: {note: [find]}}
urls:
  note: https://e.org/{locale}/{on.year}/{on.month}/{slug}/{documentId}/{name}?x={createdAt.day}
  upload: https://cms.e.org
feeds: {news: {type: note, locale: "*", item: {title: slug, summary: none}}}
"""
    site = load(tmp_path, {**TYPES, "site.yaml": text})
    assert site.problems == ()
