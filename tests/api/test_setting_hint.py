"""What a server logs of a request that a setting of site.yaml would allow."""

from pathlib import Path

from tests.servers import free_port, get, serving
from tests.sites import STRING, collection, relation, write

FILES = {
    **collection("page", {"title": STRING, "author": relation("manyToOne", "author")}),
    **collection("author", {"name": STRING}),
    "site.yaml": "roles: {public: {page: [find], author: [find]}}\n",
}
PAGED = "/api/pages?populate=author&pagination%5Bpage%5D=1"


def test_the_first_refusal_of_all_workers_is_one_line_with_the_name_of_the_setting(tmp_path: Path) -> None:
    write(tmp_path / "site", FILES)
    port = free_port()
    with (
        (tmp_path / "log").open("wb") as output,
        serving(tmp_path / "site", port, "--workers", "2", output=output),
    ):
        assert get(port, "/api/pages?populate=author")[0] == 200
        assert "refused" not in (tmp_path / "log").read_text()
        assert {get(port, PAGED)[0] for _ in range(20)} == {400}
    told = [line for line in (tmp_path / "log").read_text().splitlines() if "refused" in line]
    assert len(told) == 1
    assert "api.populate_with_pagination: allow in site.yaml" in told[0]
