"""Tests of opening a site, with real files."""

import json
from pathlib import Path

import pytest

from server.service.opening import Mode, open_site
from server.site.change import Change
from server.site.site import Site
from server.write.context import Context
from tests.git import commit_all
from tests.service.sites import FILES
from tests.sites import write, write_to


def test_a_write_succeeds_even_if_it_cannot_be_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def report(site: Site, change: Change, seconds: float) -> None:
        raise OSError("the log is gone")

    write(tmp_path, FILES)
    commit_all(tmp_path)
    site = open_site(tmp_path, Mode.SERVER, records=False, report=report).site
    write_to(site, create_tag, None)
    assert json.loads((tmp_path / "content/tags/sea.json").read_text()) == {"name": "Sea"}
    assert site.state.snapshot.tables["api::tag.tag"].versions
    assert "a change could not be reported" in caplog.text


def create_tag(request: None, context: Context) -> None:
    context.changeset.put("content/tags/sea.json", '{"name": "Sea"}\n')
