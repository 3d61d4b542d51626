"""Redirects in the formats of web servers. nginx and Apache read and serve what is generated."""

import csv
import io
import shutil
import unicodedata
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.documents.document import make_version
from server.schema.model import Type
from server.service.public_site.redirect_formats import FORMATS
from server.service.public_site.redirects import Redirect
from server.site.aliases import resolve_alias
from tests.servers import free_port
from tests.test_static_servers import is_root, run_nginx, running

TYPE = Type("api::note.note", "collectionType", "note", "notes", "Note", {})
TIME = "2024-01-01T00:00:00.000Z"
DOCUMENT = make_version(TYPE, "a", [], (TIME, TIME, TIME), "en", "content/notes/a.md")
ADDRESS = "https://example.org/new"
# Aliases that would be rules or break a file if they were not escaped.
ODD = (
    "/plain",
    "/two words",
    "/\"quoted\" 'twice'",
    "/back\\slash",
    "/über/uns",
    "/100%",
    "/a+b",
    "/semi;colon{brace}",
    "/$uri/${request_uri}/$1",
    "/%{HTTP_HOST}/%1",
    "/.*[a-z](x|y)^$%3F",
    "/* :splat",
    "/~regex",
    "/#hash".replace("#", "%23"),
    "/tab\tand\nreturn 200 x;",
    "/\u2028line",
    "/?p=12",
    "/index.php?id=7&x=%22y%22",
    "/index.php?id=8",
    "/index.php/deeper",
    "/Case",
    "/a/../b//c/./d",
)


def redirect(alias: str, target: str = ADDRESS) -> Redirect:
    return Redirect(*resolve_alias(alias, ADDRESS), target, DOCUMENT)


TARGETS = (
    "https://example.org/new",
    "https://example.org/caf%C3%A9%20$1/%7B%22;%25",
    "https://other.org/x?y=1&z=2",
)
REDIRECTS = sorted(
    (redirect(alias, TARGETS[i % len(TARGETS)]) for i, alias in enumerate(ODD)), key=lambda one: one.source
)


def written(name: str, redirects: list[Redirect] = REDIRECTS) -> tuple[str, list[Redirect]]:
    return FORMATS[name].write(redirects)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def location(url: str) -> tuple[int, str]:
    """Return the status and the target of the response to a request."""
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(url, timeout=10) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        with error:
            headers: Message = error.headers
            return error.code, headers.get("Location", "")


def same(one: str, other: str) -> bool:
    """Whether two URLs are the same after decoding."""
    return urllib.request.unquote(one) == urllib.request.unquote(other)  # type: ignore[attr-defined]


def check(address: str, left: list[Redirect]) -> None:
    """Check all redirects on a real server."""
    for one in REDIRECTS:
        status, target = location(address + one.source)
        if one in left:
            assert status in (403, 404), one.source
        else:
            assert (status, same(target, one.target)) == (301, True), (one.source, target)
    for other in ("/", "/plain2", "/xplain", "/plain/deeper", "/case", "/index.php", "/index.php?id=9", "/a"):
        assert location(address + other)[0] in (403, 404), other
    assert location(f"{address}/plain/")[0] == 301
    assert location(f"{address}/plain?utm=1")[0] == 301


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_nginx_serves_the_redirects(tmp_path: Path) -> None:
    text, left = written("nginx")
    (tmp_path / "redirects.conf").write_text(text)
    config = f"server {{ listen 80; location / {{ return 404; }} include {tmp_path}/redirects.conf; }}"
    assert {one.source for one in left} == {"/tab%09and%0Areturn%20200%20x%3B", "/%E2%80%A8line"}
    with run_nginx(config, tmp_path) as address:
        check(address, left)


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_nginx_reads_the_longest_redirects(tmp_path: Path) -> None:
    long = [redirect(f"/{'x' * 253}"), redirect(f"/{'%C3%A9%22' * 84}"), redirect(f"/a?{',' * 1997}")]
    too_long = [
        redirect("/b", f"https://example.org/{'!' * 2000}"),
        redirect(f"/{'x' * 254}"),
        redirect("/" + "%C3%A9" * 127),
    ]
    text, left = written("nginx", long + too_long)
    (tmp_path / "redirects.conf").write_text(text)
    assert set(left) == set(too_long)
    config = f"server {{ listen 80; location / {{ return 404; }} include {tmp_path}/redirects.conf; }}"
    with run_nginx(config, tmp_path) as address:
        assert [location(address + one.source)[0] for one in long] == [301] * len(long)


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_nginx_still_serves_a_page_whose_address_with_a_query_is_an_alias(tmp_path: Path) -> None:
    (tmp_path / "ferry").write_text("a page")
    (tmp_path / "index.html").write_text("home")
    text, left = written("nginx", [redirect("/?y=1"), redirect("/ferry?x=1"), redirect("/$args?x=1")])
    assert [one.source for one in left] == ["/%24args?x=1"]
    (tmp_path / "redirects.conf").write_text(text)
    config = f"server {{ listen 80; root {tmp_path}; include {tmp_path}/redirects.conf; }}"
    with run_nginx(config, tmp_path) as address:
        for page in ("/", "/?y=2", "/ferry", "/ferry?utm=1"):
            assert location(address + page)[0] == 200, page
        for alias in ("/?y=1", "/ferry?x=1", "/ferry/?x=1"):
            assert location(address + alias) == (301, ADDRESS), alias


def test_nginx_gets_one_location_for_each_path() -> None:
    aliases = sorted((redirect(alias) for alias in ("/a", "/a/b", "/a?x=1")), key=lambda one: one.source)
    text, _ = written("nginx", aliases)
    sources = [line.split(" ")[2] for line in text.splitlines()]
    assert sources == ['"/a"', '"/a/"', '"/a/b"', '"/a/b/"']


APACHE = """
ServerRoot {folder}
Listen 127.0.0.1:{port}
ServerName localhost
PidFile {folder}/pid
ErrorLog {folder}/error.log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule rewrite_module /usr/lib/apache2/modules/mod_rewrite.so
{user}
DocumentRoot {folder}/htdocs
<Directory {folder}/htdocs>
AllowOverride FileInfo
Require all granted
</Directory>
"""


@contextmanager
def apache(htaccess: str) -> Iterator[str]:
    """Context manager: run Apache with a `.htaccess` file. Its user must be able to read all parent folders,
    which pytest's temporary folders do not allow.
    """
    with TemporaryDirectory(prefix="bifolio-apache-") as name:
        port, folder = free_port(), Path(name)
        (folder / "htdocs").mkdir()
        (folder / "htdocs" / ".htaccess").write_text(htaccess)
        folder.chmod(0o755)
        user = "User www-data\nGroup www-data" if is_root() else ""
        (folder / "httpd.conf").write_text(APACHE.format(folder=folder, port=port, user=user))
        command = ["apache2", "-f", str(folder / "httpd.conf"), "-DFOREGROUND"]
        with running(command, port, folder / "log") as address:
            yield address


@pytest.mark.skipif(not shutil.which("apache2"), reason="apache2 is not installed")
def test_apache_serves_the_redirects() -> None:
    text, left = written("htaccess")
    assert {one.source for one in left} == {"/tab%09and%0Areturn%20200%20x%3B", "/%E2%80%A8line"}
    with apache(text) as address:
        check(address, left)


def test_netlify_gets_one_rule_per_line() -> None:
    text, left = written("netlify")
    lines = text.splitlines()
    assert (len(lines), left) == (len(REDIRECTS), [])
    assert lines[:3] == [
        "/ p=12 /caf%C3%A9%20%241/%7B%22%3B%25 301",
        "/index.php id=7 x=%22y%22 https://other.org/x?y=1&z=2 301",
        "/index.php id=8 /new 301",
    ]
    assert "/plain /new 301" in lines
    for line in lines:
        source, *_, target, status = line.split(" ")
        assert (source[0], status) == ("/", "301")
        assert not set(source + target.removeprefix("https://")) & set("*:#\"'"), line


def test_cloudflare_pages_gets_each_path_with_and_without_a_slash() -> None:
    long = redirect("/" + "x" * 990)
    text, left = written("cloudflare-pages", [*REDIRECTS, long])
    lines = text.splitlines()
    assert [one for one in left if "?" not in one.source] == [long]
    assert len(lines) == 2 * (len(REDIRECTS) + 1 - len(left))
    assert lines[lines.index("/plain /new 301") + 1] == "/plain/ /new 301"
    assert all(len(line.split(" ")) == 3 for line in lines)


def test_cloudflare_gets_rows_without_query_strings() -> None:
    text, left = written("cloudflare")
    rows = list(csv.reader(io.StringIO(text)))
    assert {one.source.partition("?")[0] for one in left} == {"/", "/index.php"}
    assert len(rows) + len(left) == len(REDIRECTS)
    assert [
        "https://example.org/two%20words",
        "https://example.org/caf%C3%A9%20%241/%7B%22%3B%25",
        "301",
    ] in rows


@given(st.lists(st.text(min_size=1), max_size=5), st.sampled_from([*FORMATS]))
def test_no_alias_adds_a_rule(aliases: list[str], name: str) -> None:
    redirects = []
    for alias in aliases:
        try:
            redirects.append(redirect(alias))
        except ValueError:
            continue
    unique = sorted({one.source: one for one in redirects}.values(), key=lambda one: one.source)
    text, left = FORMATS[name].write(unique)
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp") and c != "\n"]
    rules = [line for line in text.split("\n") if line and line not in ("[", "]", "[]", "RewriteEngine On")]
    rules = [line for line in rules if not line.startswith("RewriteCond")]
    paths = {one.source.partition("?")[0] for one in unique if one not in left}
    roots = "/" in paths
    doubled = 2 * len(paths) - roots if name in ("nginx", "cloudflare-pages") else 0
    expected = doubled or len(unique) - len(left)
    assert len(rules) == expected
