"""Fixtures for the tests of the studio: a real server of the repository's example site, and a real
browser.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.clients.npm import install, missing_node
from tests.example_site import copy_derived, copy_site, derived_files
from tests.servers import free_port, start, stop, wait
from tests.sites import Files, write
from tests.waiting import until

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FIGURES = ROOT / "docs/figures/studio"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# The same engine without windows: a page needs half the processor time. Benchmarks use CHROMIUM itself.
HEADLESS = shutil.which("chromium-headless-shell") or CHROMIUM
OPTIONS = ["--no-sandbox", "--force-prefers-reduced-motion", "--font-render-hinting=none"]
# A page without a graphics process takes a tenth less processor time. Benchmarks don't use these options.
WITHOUT_GPU = ["--disable-gpu", "--in-process-gpu"]
# Slows the browser down by this factor. SLOW=10 reveals failures that otherwise occur only on a busy machine.
SLOW = float(os.environ.get("SLOW", "1"))
LONGEST_MS = 30_000 * max(1, SLOW / 6)  # the maximum time to wait for anything; a busy machine needs long
# The folder with the bundled studio, which `make test-studio` creates. It saves a fifth of processor time,
# because a page loads 16 files instead of 100. If the folder is missing, servers use the separate modules.
BUNDLED_PAGE = os.environ.get("STUDIO_PAGE")
USE_PAGE = "import pathlib, server.api.studio.routes as routes; routes.PAGE = pathlib.Path({!r})\n"
SERIOUS = ("serious", "critical")
LAST_REQUESTS = 20  # the number of requests that are listed if a test fails
# Simulates a slow display: what the page schedules for the next frame waits until `releaseFrames` is called.
HELD_FRAMES = """
const held = [];
const [frame, timer] = [requestAnimationFrame, setTimeout];
const NEXT_FRAME_MS = 100;
let holds = false;
window.requestAnimationFrame = (does) => (holds ? held.push(does) : frame(does));
window.setTimeout = (does, ms = 0, ...rest) => {
  return holds && ms < NEXT_FRAME_MS ? held.push(does) : timer(does, ms, ...rest);
};
window.holdFrames = () => void (holds = true);
window.releaseFrames = () => {
  holds = false;
  for (const does of held.splice(0)) frame(does);
};
"""
Page = Any
OPENED = pytest.StashKey[list[tuple[Page, dict[Any, str]]]]()  # the pages of a test, and their requests


class Studio:
    """A running server of a site, with the URL and the key for signing in to its studio."""

    def __init__(
        self, folder: Path, *options: str, files: Files | None = None, separate_modules: bool = False
    ) -> None:
        """Create a site from the given files, or copy the repository's example site.

        With `separate_modules`, the server never uses the bundled studio, because a test names its modules.
        """
        self.root, self.log, self.port = folder / "site", folder / "log", free_port()
        if files is not None:
            write(self.root, files)
        else:
            copy_site(self.root)
            copy_derived(derived_files(), self.root)
        for hours, path in enumerate(sorted(self.root.rglob("*.*"))):
            os.utime(path, (time.time() - 3600 * hours,) * 2)
        self.options = options
        bundled = not separate_modules and BUNDLED_PAGE and Path(BUNDLED_PAGE).is_dir()
        self._first = USE_PAGE.format(BUNDLED_PAGE) if bundled else ""

    def start(self, first: str = "") -> None:
        """Start the server, which prints a new key. `first` is Python code that the server runs before."""
        with self.log.open("wb") as out:
            self.process = start(
                self.root, self.port, "--workers=1", *self.options, output=out, first=self._first + first
            )
        wait(self.process, self.port)
        until(lambda: "Ctrl-C stops it" in self.log.read_text())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/studio"

    @property
    def entrance(self) -> str:
        """The URL for signing in, which includes the one-time key."""
        found = re.search(r"http://\S+\?key=\S+", self.log.read_text())
        assert found
        return found[0]


# What the studio sends with requests, without which the server ignores its cookie
STUDIO_HEADERS = {"Bifolio-Studio": "1", "Sec-Fetch-Site": "same-origin"}


def answer_to(page: Page, studio: Studio, path: str) -> str:
    """Return the API's response for a path, as the user who is signed in on the page. Return "" if it is an
    error.
    """
    url = f"http://127.0.0.1:{studio.port}/api/{path}"
    answer = page.request.get(url, headers=STUDIO_HEADERS)
    return str(answer.text()) if answer.ok else ""


def is_save(request: Any, path: str, method: str = "PUT") -> bool:
    """Return whether a request writes to a path of the API. Requests that report presence are excluded."""
    return bool(request.method == method and urlsplit(request.url).path == f"/api/{path}")


def expect(found: Any) -> Any:
    """Return Playwright's assertions for a page or a locator. They wait until they are true."""
    return pytest.importorskip("playwright.sync_api").expect(found)


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server that several tests share. They must not leave changes."""
    made = Studio(tmp_path_factory.mktemp("studio"))
    made.start()
    yield made
    stop(made.process)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser: Debian's Chromium."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (make test-studio)"
    )
    if HEADLESS is None:
        pytest.skip("there is no chromium on this machine")
    playwright.expect.set_options(timeout=LONGEST_MS)
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=HEADLESS, args=OPTIONS + WITHOUT_GPU)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def signed_in(studio: Studio, browser: Any) -> Any:
    """The browser state in which the owner is signed in."""
    return signed_in_at(studio, browser)


@pytest.fixture(scope="module")
def entered(site: Studio, browser: Any) -> Any:
    """The browser state in which the owner of the module's own `site` is signed in."""
    return signed_in_at(site, browser)


def slow_down(page: Page) -> None:
    """Slow down a page's computations, as on a busy machine."""
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOW})


def sign_in(page: Page, name: str) -> None:
    """Sign in with the password on a page that shows the sign-in form."""
    page.get_by_label("E-mail address or user name").fill(name)
    page.get_by_label("Password", exact=True).fill("slack water")
    page.keyboard.press("Enter")


def signed_in_users(studio: Studio, browser: Any, names: Iterable[str]) -> dict[str, Any]:
    """Sign in as the users `a-NAME`, and return the browser state of each, by name."""
    found = {}
    for name in names:
        context = browser.new_context()
        page = context.new_page()
        page.goto(studio.url)
        sign_in(page, f"a-{name}")
        page.get_by_role("heading", level=1, name="Recently changed").wait_for()
        found[name] = context.storage_state()
        context.close()
    return found


def signed_in_at(studio: Studio, browser: Any) -> Any:
    """Sign in with the studio's one-time key, and return the browser state."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(studio.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    state = context.storage_state()
    context.close()
    return state


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """If a test fails, add what its pages show to the report."""
    report = yield
    if report.when == "call" and report.failed:
        for page, asked in item.stash.get(OPENED, []):
            report.sections.append((f"Page {page.url}", shown_on(page, asked)))
    return report


def shown_on(page: Page, asked: dict[Any, str]) -> str:
    """Describe what a page shows, which element has the focus, and the last requests with their responses."""
    requests = "\n".join(list(asked.values())[-LAST_REQUESTS:])
    try:
        focus = page.evaluate("document.activeElement?.cloneNode().outerHTML")
        return f"{page.locator('body').aria_snapshot()}\n\nFocus: {focus}\n\n{requests}"
    # The page is closed or hangs. The failure of the test itself is reported anyway.
    except Exception as error:
        return f"{error}\n\n{requests}"


def note_requests(page: Page) -> dict[Any, str]:
    """Record a page's requests from now on. The result maps each request to the status of its response."""
    asked: dict[Any, str] = {}

    def sent(request: Any) -> None:
        if "/studio/-/" not in request.url:  # files of the studio itself
            asked[request] = f"{request.method} {request.url} {request.post_data or ''}"

    def answered(response: Any) -> None:
        if response.request in asked:
            asked[response.request] += f" {response.status}"

    page.on("request", sent)
    page.on("response", answered)
    return asked


@pytest.fixture
def new_page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """A function that opens pages. No page may log an error, except for failed requests."""
    contexts, errors = [], []
    opened = request.node.stash[OPENED] = []

    def make(**options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(LONGEST_MS)
        contexts.append(context)
        if SLOW > 1:
            context.on("page", slow_down)
        page = context.new_page()
        opened.append((page, note_requests(page)))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
        return page

    yield make
    for context in contexts:
        context.close()
    assert [error for error in errors if "Failed to load resource" not in error] == []


@pytest.fixture
def page(new_page: Callable[..., Page], signed_in: Any) -> Page:
    """A page in which the owner is signed in."""
    return new_page(storage_state=signed_in)


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder with the npm packages that the tests use, which are installed if necessary."""
    missing = missing_node((20, 0)) or install(HERE)
    if missing:
        pytest.skip(missing)
    return HERE / "node_modules"


# After a change of the color scheme, colors in between would have too little contrast.
TRANSITIONS_END = """async () => {
  const end = (one) => one.effect.getComputedTiming().endTime;
  const finite = document.getAnimations().filter((one) => end(one) !== Infinity);
  await Promise.allSettled(finite.map((one) => one.finished));
}"""


@pytest.fixture(scope="session")
def check_access(packages: Path) -> Callable[[Page], None]:
    """A function that asserts that axe-core finds no serious problem on a page."""
    script = (packages / "axe-core/axe.min.js").read_text()

    def check(page: Page) -> None:
        page.evaluate(script)
        page.evaluate(TRANSITIONS_END)
        found = page.evaluate("axe.run()")["violations"]
        serious = [
            (violation["id"], [node["html"] for node in violation["nodes"]])
            for violation in found
            if violation["impact"] in SERIOUS
        ]
        assert serious == [], page.url

    return check
