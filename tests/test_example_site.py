"""Tests of the copies of the repository's own site: servers use the files that are copied with them."""

import shutil
from pathlib import Path

from server.search.status import read_status
from tests.example_site import SEARCH, copy_site, write_search_index


def test_the_search_index_of_a_copy_is_used_as_it_is(tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    for site in (first, other):
        copy_site(site)
    write_search_index(first)
    written = read_status(first / ".bifolio" / SEARCH)
    assert written
    assert written.documents == written.total > 50
    shutil.copytree(first / ".bifolio" / SEARCH, other / ".bifolio" / SEARCH)
    write_search_index(other)
    assert read_status(other / ".bifolio" / SEARCH) == written
