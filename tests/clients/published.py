"""Tests of redirects with the code of Netlify and Cloudflare, and of sitemaps and Atom feeds with schemas
(`make test-clients`).
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from server.service.public_site.feeds import feed_text
from server.service.public_site.public_reader import PublicSite
from server.service.public_site.sitemap import sitemaps
from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.service.public_site.sites import FILES
from tests.service.public_site.test_redirect_formats import REDIRECTS, same, written
from tests.sites import Files, load

HERE = Path(__file__).parent
ATOM = HERE.parent / "service/public_site/atom.rng"


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the services read in the files."""
    if (reason := missing_node() or install(HERE, "--legacy-peer-deps")) is not None:
        skipped("test-clients", reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("published")
    for name in ("netlify", "cloudflare-pages"):
        (folder / name).write_text(written(name)[0])
    public = PublicSite(load(folder / "site", FILES).state)
    good = sitemaps(public)["sitemap.xml"].decode()
    feeds = {name: feed_text(public, name, "atom") for name in ("news", "everything", "red")}
    nothing = PublicSite(load(folder / "nothing", without_content()).state)
    asked = {
        "netlify": str(folder / "netlify"),
        "pages": str(folder / "cloudflare-pages"),
        "requests": [path + end for path in sources("cloudflare-pages") for end in ("", "/")],
        "sitemaps": [good, good.replace("<lastmod>20", "<lastmod>x")],
        "atom": ATOM.read_text(),
        "feeds": {
            **feeds,
            "nothing": feed_text(nothing, "news", "atom"),
            "wrong date": feeds["news"].replace("<updated>20", "<updated>x", 1),
            "no id": re.sub("<id>.*?</id>", "", feeds["news"]),
        },
    }
    done = subprocess.run(
        ["node", "published.mjs"], cwd=HERE, input=json.dumps(asked), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def without_content() -> Files:
    return {path: text for path, text in FILES.items() if not path.startswith("content/")}


def sources(name: str) -> dict[str, str]:
    left = written(name)[1]
    return {one.source: one.target for one in REDIRECTS if one not in left and one.source != "/"}


def test_netlify_reads_every_redirect(read: Any) -> None:
    assert read["errors"] == []
    found = {}
    for rule in read["netlify"]:
        query = "&".join(f"{key}={value}" for key, value in rule["query"].items())
        found[rule["from"] + (f"?{query}" if query else "")] = rule["to"], rule["status"]
    assert found.keys() == {one.source for one in REDIRECTS}
    for one in REDIRECTS:
        target, status = found[one.source]
        full = one.origin + target if target.startswith("/") else target
        assert (status, same(full, one.target)) == (301, True)


def test_cloudflare_pages_redirects_every_path_with_and_without_a_slash(read: Any) -> None:
    targets = [target for target in sources("cloudflare-pages").values() for _ in range(2)]
    for answer, target in zip(read["pages"], targets, strict=True):
        assert answer[0] == 301
        assert same(answer[1], target)


def test_the_sitemap_is_valid(read: Any) -> None:
    good, bad = read["sitemaps"]
    assert good == []
    assert any("lastmod" in error for error in bad)


def test_atom_feeds_are_valid(read: Any) -> None:
    wrong = {name for name, errors in read["feeds"].items() if errors}
    assert wrong == {"wrong date", "no id"}, read["feeds"]
