"""Tests of the documentation as a site: its index matches the front matter, and the API, search and front
page work.
"""

import json
import re
import shutil
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml

from docs.site.__main__ import front
from tests.servers import free_port, get, serving
from tests.sites import opened
from tests.waiting import until

DOCS = Path(__file__).parent.parent / "docs"
FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n\n# ", re.DOTALL)
PAGES = sorted(DOCS.glob("*.md"))


def front_matter(page: Path) -> dict[str, object]:
    found = FRONT_MATTER.match(page.read_text(encoding="utf-8"))
    assert found, page.name
    return dict(yaml.safe_load(found[1]))


def index() -> dict[str, dict[str, object]]:
    """Return the pages in docs/README.md, each with the front matter that its table row implies."""
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    rows: dict[str, dict[str, object]] = {}
    for part in text.split("\n## ")[1:]:
        section = part.partition("\n")[0]
        for title, name, summary in re.findall(r"^\| \[(.*?)\]\(([\w-]+\.md)\) \| (.*) \|$", part, re.M):
            rows[name] = {"title": title, "section": section, "summary": summary}
    return rows


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "README.md"], ids=lambda page: page.name)
def test_front_matter_is_the_row_of_the_index(page: Path) -> None:
    found = front_matter(page)
    assert isinstance(found.pop("order"), int)
    assert found == index()[page.name]


def test_the_order_of_pages_is_that_of_the_index() -> None:
    assert sorted(index(), key=lambda name: str(front_matter(DOCS / name)["order"]).zfill(3)) == [*index()]


def copied(folder: Path) -> Path:
    ignored = shutil.ignore_patterns(".bifolio", "__pycache__")
    return Path(shutil.copytree(DOCS, folder / "docs", ignore=ignored))


def test_no_problems(tmp_path: Path) -> None:
    assert [str(problem) for problem in opened(copied(tmp_path)).problems] == []


def test_the_api_search_and_front_page(tmp_path: Path) -> None:
    port, front_port = free_port(), free_port()
    server = front(front_port)
    try:
        with serving(copied(tmp_path), port):
            listed = "/api/pages?fields=title,section&sort=order&pagination[pageSize]=100"
            pages = json.loads(get(port, listed)[1])["data"]
            assert {page["documentId"] for page in pages} == {path.stem for path in PAGES}
            assert [page["title"] for page in pages[:2]] == ["Documentation", "Tutorial"]
            assert json.loads(get(port, "/api/pages/glossary")[1])["data"]["body"].startswith("# Glossary")

            def first() -> str:
                found = json.loads(get(port, "/search?q=nginx+systemd&type=page")[1])["data"]
                return str(found[0]["documentId"]) if found else ""

            until(lambda: first() == "deployment")
        for path in ("", "front.js", "vendor/markdown.js", "figures/growth.svg"):
            with urlopen(f"http://127.0.0.1:{front_port}/{path}") as response:
                assert response.status == 200
        for path in (
            "__main__.py",
            "site/__main__.py",
            "../README.md",
            "vendor/../routes.py",
            "vendor/licences.txt",
        ):
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"http://127.0.0.1:{front_port}/{path}")
    finally:
        server.shutdown()
        server.server_close()
