"""The order of checks in an editor: a text that is open is checked before the site."""

from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pytest

import server.lsp.workspace
from server.jobs.job import Timing
from server.lsp.positions import Text
from server.lsp.protocol import Json
from server.lsp.view import EditorCapabilities
from server.lsp.workspace import OpenText, Workspace
from server.site.check.readings import ProseCache
from server.site.check.survey import Survey
from server.site.check.unsaved import UnsavedSite, survey_unsaved
from tests.sites import STRING, collection, write

PATH = "content/articles/a.md"
TIMEOUT_S = 60
KIND = {"type": "enumeration", "enum": ["news", "essay"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = collection("article", {"title": STRING, "kind": KIND})
    write(tmp_path, {"site.yaml": "name: A\n", **files, PATH: "---\ntitle: A\n---\n"})
    return tmp_path


def opened(kind: str, version: int) -> OpenText:
    return OpenText("file:///a.md", Text(f"---\ntitle: A\nkind: {kind}\n---\n"), version)


def test_a_problem_that_is_shown_has_its_fix_before_the_site_is_checked(root: Path) -> None:
    surveys = Queue[Survey]()

    def publish(uri: str, version: int | None, shown: list[Json]) -> None:
        if view := workspace.view:
            surveys.put(workspace.survey_file(PATH, view.overlay))

    workspace = Workspace(root, EditorCapabilities(), publish, Timing())
    workspace.set_text(PATH, opened("News", 1))
    workspace.start()
    try:
        found = surveys.get(timeout=TIMEOUT_S)
        assert [problem.rule for problem in found.problems] == ["value"]
        assert [fix.new for fix in found.fixes.values()] == ["news"]
    finally:
        workspace.stop()


def test_a_changed_text_ends_a_check_of_the_site(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions, ends = Queue[int | None](), list[str]()

    def survey(overlay: UnsavedSite, readings: ProseCache, checkpoint: Callable[[], None]) -> Survey:
        if not ends:
            workspace.set_text(PATH, opened("novel", 2))
        try:
            found = survey_unsaved(overlay, readings, checkpoint)
        except Exception as error:
            ends.append(type(error).__name__)
            raise
        ends.append("done")
        return found

    monkeypatch.setattr(server.lsp.workspace, "survey_unsaved", survey)
    workspace = Workspace(
        root, EditorCapabilities(), lambda uri, version, shown: versions.put(version), Timing()
    )
    workspace.set_text(PATH, opened("news", 1))
    workspace.start()
    try:
        while versions.get(timeout=TIMEOUT_S) != 2:
            pass
        assert ends[0] == "_CheckAbandonedError"
    finally:
        workspace.stop()
