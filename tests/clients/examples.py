"""Test of the front ends in examples/, for `make test-clients`, with a running server of the repository's own
site.

Each front end is copied into a folder in the user's cache, where the packages that npm installed are kept.
The built front end must list the articles, show one article with its author and picture, and show a draft
only in its preview.
"""

import fcntl
import html
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from bench.peer.install import cache
from server.auth.accounts import Accounts
from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.servers import ROOT, free_port, serving
from tests.signals import restore_in_children

AT_ONCE = 2  # npm mostly waits for the network
NODE = (20, 19)  # the newest framework requires this version
BUILD_S = 900.0  # a build took four minutes on a busy machine
START_S = 120.0
SECRET = "only-editors-know"
QUIET = {"NEXT_TELEMETRY_DISABLED": "1", "ASTRO_TELEMETRY_DISABLED": "1", "NUXT_TELEMETRY_DISABLED": "1"}


@dataclass(frozen=True, slots=True)
class Example:
    """A folder in examples/: either a front end that builds files or a front end that has its own server."""

    name: str
    files: str = ""  # the folder with the built files; empty if the front end has a server
    preview: str = ""  # the URL that shows the draft `{slug}` to anyone who knows the secret
    prefix: str = ""  # prefix of its environment variables
    options: tuple[str, ...] = ()  # options for `npm start`


EXAMPLES = (  # the slowest first
    Example("nuxt", preview=f"/articles/{{slug}}?preview=true&token={SECRET}", prefix="NUXT_"),
    Example("next", preview=f"/api/draft?secret={SECRET}&slug={{slug}}", options=("--hostname", "127.0.0.1")),
    Example("astro", files="dist"),
    Example("sveltekit", preview=f"/preview?secret={SECRET}&slug={{slug}}"),
    Example("eleventy", files="_site"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """A response: its status, content type, redirect target, cookies and text."""

    status: int
    kind: str
    location: str
    cookies: str
    text: str


def main(names: list[str]) -> int:
    """Build and check the named examples, or all. Return 0 if they show what they should."""
    restore_in_children()
    if (reason := missing_node(NODE)) is not None:
        return skipped("examples", reason)
    with tempfile.TemporaryDirectory(prefix="bifolio-examples-") as folder:
        site = Path(folder)
        own_site(site)
        accounts = Accounts(site)
        token = accounts.create_token("preview", "read-only")
        accounts.close()
        chosen = [example for example in EXAMPLES if not names or example.name in names]
        with (
            serving(site, free_port(), output=subprocess.DEVNULL) as url,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            for reason in pool.map(lambda example: timed(example, url, token), chosen):
                if reason is not None:
                    return skipped("examples", reason)
    return 0


def own_site(site: Path) -> None:
    """Copy the repository's own site into a folder."""
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, site / name)
    shutil.copy(ROOT / "site.yaml", site)


def timed(example: Example, url: str, token: str) -> str | None:
    """Test an example and print its duration. If it could not be installed, return the reason."""
    began = time.monotonic()
    if (reason := try_out(example, url, token)) is None:
        print(f"examples/{example.name}: {time.monotonic() - began:.0f} s", flush=True)
    return reason


def try_out(example: Example, url: str, token: str) -> str | None:
    """Install, build and check an example. If it could not be installed, return the reason."""
    with installed(example.name) as (folder, reason):
        if reason is not None:
            return reason
        settings = {"BIFOLIO_URL": url, "BIFOLIO_TOKEN": token, "PREVIEW_SECRET": SECRET}
        if example.files:
            look_at_files(example, folder, settings)
        else:
            look_at_server(example, folder, {example.prefix + name: settings[name] for name in settings})
    return None


@contextmanager
def installed(name: str) -> Iterator[tuple[Path, str | None]]:
    """Context manager: install an example in the cache, and lock its folder.

    Yield the folder, and the reason if npm can't reach its registry.
    """
    folder = cache() / "examples" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Another run may be using the same cache.
        copy(ROOT / "examples" / name, folder)
        yield folder, install(folder)


def copy(source: Path, folder: Path) -> None:
    """Copy an example's files into its cache folder. Everything else there is deleted, except installed
    packages.
    """
    for path in folder.iterdir():
        if path.is_dir() and path.name != "node_modules":
            shutil.rmtree(path)
        elif path.is_file() and path.name != ".lock":
            path.unlink()
    made = shutil.ignore_patterns("node_modules", ".next", ".nuxt", ".output", ".svelte-kit", "build", "dist")
    shutil.copytree(source, folder, ignore=made, dirs_exist_ok=True)


def look_at_files(example: Example, folder: Path, settings: Mapping[str, str]) -> None:
    """Build an example that generates files, once for visitors and once for editors, and check the files."""
    built = folder / example.files
    build(folder, {"BIFOLIO_URL": settings["BIFOLIO_URL"]})
    index, article = built / "index.html", built / "articles" / "the-knot-count" / "index.html"
    assert_lists(index.read_text())
    picture = assert_shows(article.read_text())
    assert (built / picture.lstrip("/")).stat().st_size > 1000, picture
    draft = built / "articles" / "oyster-lease" / "index.html"
    assert not draft.exists()
    build(folder, {**settings, "BIFOLIO_STATUS": "draft"})
    assert "Oyster lease" in draft.read_text()


def look_at_server(example: Example, folder: Path, settings: Mapping[str, str]) -> None:
    """Build an example that has a server, start the server, and check its pages with and without
    the preview.
    """
    build(folder, settings)
    with started(folder, settings, example.options) as port:
        assert_lists(visit(port, "/").text)
        picture = visit(port, assert_shows(visit(port, "/articles/the-knot-count").text))
        assert picture.status == 200, picture
        assert picture.kind.startswith("image/"), picture
        assert visit(port, "/articles/oyster-lease").status == 404
        preview = example.preview.format(slug="oyster-lease")
        assert "Harriet Osgoodby" in previewed(port, preview).text
        refused = previewed(port, preview.replace(SECRET, "guess"))
        assert refused.status in (401, 404), refused


def assert_lists(text: str) -> None:
    """Require that a list names the published article and links to it, and does not name the draft."""
    assert "The knot count" in text, text
    assert re.search(r'href="/articles/the-knot-count/?"', text), text
    assert "Oyster lease" not in text


def assert_shows(text: str) -> str:
    """Require that an article has its title, author, picture and formatted text. Return the picture's URL."""
    assert "<h1>The knot count</h1>" in text, text
    assert "Tobias Wrackham" in text, text
    assert re.search(r"<em>Calidris\s+canutus</em>", text), text
    found = re.search(r'<img[^>]*\bsrc="([^"]+)"', text)
    assert found, text
    assert 'alt="A large flock of small wading birds' in text, text
    return html.unescape(found[1])


def build(folder: Path, settings: Mapping[str, str]) -> None:
    """Run `npm run build`. Raises SystemExit with npm's output if the build fails."""
    environment = {**os.environ, **QUIET, **settings}
    made = subprocess.run(
        ["npm", "run", "build"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=BUILD_S,
    )
    if made.returncode:
        raise SystemExit(f"examples: {folder.name} can't be built\n{made.stdout}")


@contextmanager
def started(folder: Path, settings: Mapping[str, str], options: tuple[str, ...]) -> Iterator[int]:
    """Context manager: run an example's own server with `npm start`, and yield its port."""
    port = free_port()
    environment = {**os.environ, **QUIET, **settings, "HOST": "127.0.0.1", "PORT": str(port)}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["npm", "start", "--", *options],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + START_S
            while not answers(port):
                assert process.poll() is None, f"{folder.name} ended"
                assert time.monotonic() < deadline, f"{folder.name} does not answer"
                time.sleep(0.1)
            yield port
        except AssertionError:
            output.seek(0)
            print(output.read().decode(errors="replace"))
            raise
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)


def answers(port: int) -> bool:
    """Return whether a server responds on a port."""
    try:
        return visit(port, "/").status > 0
    except (OSError, HTTPException):
        return False


def visit(port: int, path: str, cookies: str = "") -> Page:
    """Send a GET request with cookies, without following a redirect."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Cookie": cookies} if cookies else {})
        answer = connection.getresponse()
        given = [value.partition(";")[0] for value in answer.headers.get_all("Set-Cookie", [])]
        kind, location = answer.headers.get("Content-Type", ""), answer.headers.get("Location", "")
        return Page(answer.status, kind, location, "; ".join(given), answer.read().decode(errors="replace"))
    finally:
        connection.close()


def previewed(port: int, path: str) -> Page:
    """Return the page that a preview URL shows or redirects to."""
    page = visit(port, path)
    return visit(port, page.location, page.cookies) if page.location else page


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
