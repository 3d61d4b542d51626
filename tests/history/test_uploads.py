"""Reads from `/uploads/…?at=`: media files are returned as they were at a commit."""

import io
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.api.test_upload import picture
from tests.git import commit_all, git
from tests.history.test_past import commit
from tests.sites import Api, collection, make, write
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

OLD, NEW, SAME = picture(), picture(900, 700), picture(1100, 800)
SCRIPT = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
FIRST = {
    "site.yaml": "roles: {public: {upload: [find]}}\nsearch: {index: false}\n",
    "content/uploads/a.png": OLD,
    "content/uploads/same.png": SAME,
    "content/uploads/gone.svg": SCRIPT,
}


@pytest.fixture
def site(tmp_path: Path) -> Api:
    """A site with a tag on its first commit. Since then, one picture was replaced and another was deleted."""
    root = tmp_path / "site"
    write(root, FIRST)
    commit_all(root)
    git(root, "tag", "first")
    write(root, {"content/uploads/a.png": NEW})
    git(root, "rm", "-q", "content/uploads/gone.svg")
    commit(root, 1)
    return make(root, {})


def test_a_file_that_was_replaced_is_served_as_it_was(site: Api) -> None:
    assert site.get("/uploads/a.png").raw == NEW
    then = site.get("/uploads/a.png?at=first")
    assert then.raw == OLD
    assert then.headers["Content-Type"] == "image/png"
    assert site.get("/uploads/a.png?at=main").raw == NEW
    assert site.get("/uploads/gone.svg").status == 404
    site.accounts.close()


def test_past_files_have_the_usual_headers(site: Api) -> None:
    then = site.get("/uploads/gone.svg?at=first")
    assert then.raw == SCRIPT
    assert "script-src 'none'" in then.headers["Content-Security-Policy"]
    assert then.headers["X-Content-Type-Options"] == "nosniff"
    known = {"If-None-Match": then.headers["ETag"]}
    assert site.get("/uploads/gone.svg?at=first", headers=known).status == 304
    part = site.get("/uploads/gone.svg?at=first", headers={"Range": "bytes=0-3"})
    assert (part.status, part.raw) == (206, b"<svg")
    assert "immutable" not in then.headers["Cache-Control"]
    id_ = then.headers["Bifolio-Commit"]
    assert "immutable" in site.get(f"/uploads/gone.svg?at={id_}").headers["Cache-Control"]
    assert "immutable" not in site.get(f"/uploads/no.svg?at={id_}").headers["Cache-Control"]
    site.accounts.close()


def test_formats_belong_to_the_picture_at_the_commit(site: Api) -> None:
    for path in site.site.incomplete_images():
        site.site.scale(path)
    for name in ("same.png", "a.png"):
        assert site.get(f"/uploads/small_{name}").status == 200
    assert site.get("/uploads/small_same.png?at=first").raw == site.get("/uploads/small_same.png").raw
    until(lambda: site.get("/uploads/small_a.png?at=first").status == 200)
    small = Image.open(io.BytesIO(site.get("/uploads/small_a.png?at=first").raw))
    assert small.size == (500, 333)
    site.accounts.close()


def test_uncommitted_files_are_in_no_commit(site: Api) -> None:
    write(site.root, {"content/uploads/a.png": SAME})
    assert site.get("/uploads/a.png?at=main").raw == NEW  # before the server has noticed the change
    site.site.refresh()
    assert site.get("/uploads/a.png").raw == SAME
    assert site.get("/uploads/a.png?at=main").raw == NEW
    site.accounts.close()


def test_past_files_need_the_permission_for_the_past(site: Api) -> None:
    assert site.get("/uploads/a.png", "public").raw == NEW
    assert site.get("/uploads/a.png?at=first", "public").status == 403
    site.accounts.close()


def test_a_replaced_picture_has_its_former_size_at_each_commit(tmp_path: Path) -> None:
    """This must also work if the state at one commit is derived from the state at another commit."""
    notes = {**collection("note", {"title": {"type": "string"}}), "content/notes/a.yaml": "title: A\n"}
    write(tmp_path, {**FIRST, **notes})
    commit_all(tmp_path)
    first = git(tmp_path, "rev-parse", "HEAD").strip()
    write(tmp_path, {"content/notes/b.yaml": "title: B\n"})
    second = commit(tmp_path, 1)
    write(tmp_path, {"content/uploads/a.png": NEW, "content/notes/a.yaml": "title: Z\n"})
    commit(tmp_path, 2)
    api = make(tmp_path, {})
    for then in (first, second):
        files = {file["name"]: file for file in api.get(f"/api/upload/files?at={then}").body}
        assert (files["a.png"]["width"], files["same.png"]["width"]) == (600, 1100)
        assert (
            files["same.png"]["formats"]
            == api.get("/api/upload/files?filters[name]=same.png").body[0]["formats"]
        )
    api.accounts.close()


@pytest.mark.parametrize("path", ["a.png?at=first", "same.png?at=main", "gone.svg?at=first"])
def test_shared_caches_do_not_store_past_files(site: Api, path: str) -> None:
    """Past files need the permission `history.read` or `branch.find`, but current files are public."""
    then = site.get(f"/uploads/{path}")
    again = site.get(f"/uploads/{path}", headers={"If-None-Match": then.headers["ETag"]})
    assert (then.status, again.status) == (200, 304)
    for answer in (then, again):
        directives = answer.headers["Cache-Control"].replace(" ", "").split(",")
        assert "private" in directives
        assert "public" not in directives
    assert "public" in site.get("/uploads/same.png").headers["Cache-Control"]
    site.accounts.close()
