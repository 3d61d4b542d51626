"""Fixtures of the studio's tests: a real server of the repository's own site, and a real browser in it."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.npm import install, missing_node
from tests.servers import free_port, start, stop, wait
from tests.waiting import until

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FIGURES = ROOT / "docs/figures/studio"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ["--no-sandbox", "--force-prefers-reduced-motion", "--font-render-hinting=none"]
SERIOUS = ("serious", "critical")
Page = Any


class Studio:
    """A running server of a site, and what it takes to come into its studio."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.root, self.log, self.port = folder / "site", folder / "log", free_port()
        for name in ("content", "content-types", "site.yaml"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.root / name)
            else:
                self.root.mkdir(exist_ok=True)
                shutil.copy(source, self.root / name)
        for hours, path in enumerate(sorted(self.root.rglob("*.*"))):
            os.utime(path, (time.time() - 3600 * hours,) * 2)
        self.options = options

    def start(self) -> None:
        """Start the server; it prints a new key."""
        with self.log.open("wb") as out:
            self.process = start(self.root, self.port, "--workers=1", *self.options, output=out)
        wait(self.process, self.port)
        until(lambda: "Ctrl-C stops it" in self.log.read_text())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/studio"

    @property
    def entrance(self) -> str:
        """The address with the key."""
        found = re.search(r"http://\S+\?key=\S+", self.log.read_text())
        assert found
        return found[0]


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server that tests share; none of them leaves it changed."""
    made = Studio(tmp_path_factory.mktemp("studio"))
    made.start()
    yield made
    stop(made.process)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's chromium."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (make test-studio)"
    )
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def signed_in(studio: Studio, browser: Any) -> Any:
    """The state of a browser in which the machine's owner has signed in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(studio.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def new_page(browser: Any) -> Iterator[Callable[..., Page]]:
    """Opens pages, none of which may log an error, but that a request was refused or not answered."""
    contexts, errors = [], []

    def make(**options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
        return page

    yield make
    for context in contexts:
        context.close()
    assert [error for error in errors if "Failed to load resource" not in error] == []


@pytest.fixture
def page(new_page: Callable[..., Page], signed_in: Any) -> Page:
    """A page of a browser that is signed in."""
    return new_page(storage_state=signed_in)


@pytest.fixture(scope="session")
def packages() -> Path:
    """What the tests take from npm, installed."""
    missing = missing_node((20, 0)) or install(HERE)
    if missing:
        pytest.skip(missing)
    return HERE / "node_modules"


@pytest.fixture(scope="session")
def check_access(packages: Path) -> Callable[[Page], None]:
    """Holds that axe-core finds nothing serious on a page."""
    script = (packages / "axe-core/axe.min.js").read_text()

    def check(page: Page) -> None:
        page.evaluate(script)
        found = page.evaluate("axe.run()")["violations"]
        serious = [
            (violation["id"], [node["html"] for node in violation["nodes"]])
            for violation in found
            if violation["impact"] in SERIOUS
        ]
        assert serious == [], page.url

    return check
