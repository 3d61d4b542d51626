"""What successive checks of a site share, and how a check is abandoned."""

from pathlib import Path

import pytest

from server.formats import markdown
from server.service.opening import Mode, open_site
from server.site.check.readings import ProseCache
from server.site.check.unsaved import SavedSite, survey_unsaved
from tests.sites import STRING, collection, write

FILES = {
    "site.yaml": "name: A\nurls: {article: 'https://example.org/articles/{name}/'}\n",
    **collection("article", {"title": STRING, "text": {"type": "richtext"}}),
    "content/articles/a.md": "---\ntitle: A\n---\n\n# Fog\n\n"
    "[b](b.md#rain) [b](/articles/b/#rain) [a](#fog)\n",
    "content/articles/b.md": "---\ntitle: B\n---\n\n# Rain\n\n"
    "[a](a.md#fog) [a](/articles/a/#fog) [c](/articles/c/)\n",
}


@pytest.fixture
def basis(tmp_path: Path) -> SavedSite:
    write(tmp_path, FILES)
    return SavedSite.from_site(open_site(tmp_path, Mode.READ).site)


def test_a_check_reads_only_the_prose_that_has_changed(
    basis: SavedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, texts = markdown.read_markdown, list[str]()

    def read_markdown(text: str, first_line: int) -> object:
        texts.append(text)
        return read(text, first_line)

    monkeypatch.setattr(markdown, "read_markdown", read_markdown)
    readings, path = ProseCache(), "content/articles/b.md"
    survey_unsaved(basis.with_texts({}), readings)
    assert texts
    texts.clear()
    changed = FILES[path] + "\n# Snow\n"
    overlay = basis.with_texts({path: changed})
    found = survey_unsaved(overlay, readings).problems
    assert texts
    assert all("Snow" in text for text in texts)
    assert found == survey_unsaved(overlay).problems
    assert [problem.rule for problem in found] == ["broken-link"]  # /articles/c/


def test_prose_that_is_gone_is_forgotten(basis: SavedSite) -> None:
    readings = ProseCache()
    survey_unsaved(basis.with_texts({}), readings)
    text = FILES["content/articles/a.md"]
    assert readings.anchors("content/articles/a.md", text) is not None
    readings.drop_unused()
    readings.drop_unused()
    assert readings.anchors("content/articles/a.md", text) is None


def test_a_check_can_be_abandoned_before_each_document(basis: SavedSite) -> None:
    calls = list[int]()
    survey_unsaved(basis.with_texts({}), checkpoint=lambda: calls.append(1))
    assert len(calls) >= 2

    def abandon() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        survey_unsaved(basis.with_texts({}), checkpoint=abandon)
