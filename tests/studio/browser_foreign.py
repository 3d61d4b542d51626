"""Attacks on the studio by pages of other sites, and by files that other users have uploaded: they must have
no effect.
"""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from server.auth.accounts import Accounts
from server.auth.owner import make_key
from server.auth.users import Users
from tests.git import git
from tests.servers import stop
from tests.sites import STRING, collection
from tests.studio.conftest import Page, Studio, expect, sign_in, signed_in_at
from tests.waiting import until

SCRIPT = "window.hacked = 1"
FILES = {
    **collection("note", {"title": STRING, "text": {"type": "richtext"}}, drafts=True),
    "site.yaml": (
        "roles:\n"
        "  public: {note: [find, findOne], auth: [callback]}\n"
        "  authenticated: {note: [find, findOne, create, update, delete, readDraft]}\n"
    ),
    "content/notes/one.json": json.dumps({"title": "One", "text": "A text"}),
    "content/uploads/own.js": SCRIPT,
    "content/uploads/own.css": "body {outline: 7px solid red}",
    "content/uploads/own.html": f"<script>{SCRIPT}</script><p>Shown</p>",
    "content/uploads/own.svg": (
        f'<svg xmlns="http://www.w3.org/2000/svg"><script>{SCRIPT}</script><text y="20">Shown</text></svg>'
    ),
}
# Adds an element as injected markup would, and returns whether its source was loaded.
ADD = """([tag, attributes]) => new Promise((done) => {
  const element = Object.assign(document.createElement(tag), attributes);
  element.onload = () => done("loaded");
  element.onerror = () => done("refused");
  document.body.append(element);
})"""
ASK = """([path, options]) => fetch(path, options).then((answer) => answer.status, () => "refused")"""
SUBMIT = """([action, fields]) => {
  const form = Object.assign(document.createElement("form"), {action, method: "POST"});
  for (const [name, value] of Object.entries(fields)) {
    form.append(Object.assign(document.createElement("input"), {name, value}));
  }
  document.body.append(form);
  form.submit();
}"""
HEADERS = {"Content-Type": "application/json", "Bifolio-Studio": "1"}
PAGES = (
    "",
    "/note?q=text",
    "/note/one",
    "/note/one?panel=file",
    "/note/one?panel=history",
    "/note/one?panel=preview",
    "/note/-/new",
    "/site/-/problems",
    "/site/-/changes",
)
# Records the violations of a page's content security policy.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


class Foreign:
    """Another site on its own host name. It records the URLs and headers of requests."""

    def __init__(self) -> None:
        foreign, self.seen = self, list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                foreign.seen.append(f"{self.path}\n{self.headers}")
                body = b"<!doctype html><title>Foreign</title><p>Foreign</p>"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.server.server_port}/"


@pytest.fixture(scope="module")
def foreign() -> Iterator[Foreign]:
    made = Foreign()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, foreign: Foreign) -> Iterator[Studio]:
    made = Studio(tmp_path_factory.mktemp("foreign"), files=FILES)
    text = f"[elsewhere]({foreign.url}link) ![picture]({foreign.url}picture.png)"
    (made.root / "content/notes/linked.json").write_text(json.dumps({"title": "Linked", "text": text}))
    git(made.root, "init", "-q")
    git(made.root, "add", "-A")
    git(made.root, "commit", "-q", "-m", "First")
    users = Users(Accounts(made.root, ""))
    users.create("ann", "ann@example.org", "slack water", role="authenticated", confirmed=True)
    made.start()
    yield made
    stop(made.process)


@pytest.fixture(scope="module")
def entered(site: Studio, browser: Any) -> Any:
    return signed_in_at(site, browser)


def origin_of(site: Studio) -> str:
    return site.url.removesuffix("/studio")


def open_page(page: Page, address: str) -> None:
    """Open a page of the studio, and wait until it is completely loaded."""
    page.goto(address)
    page.locator("main h1").wait_for()
    page.locator("main [aria-busy=true], main .loading").first.wait_for(state="detached")


def files_of(site: Studio) -> dict[str, str]:
    """Return the contents of the site's document files, by file name."""
    return {path.name: path.read_text() for path in (site.root / "content/notes").iterdir()}


@pytest.mark.parametrize("path", ["/studio", "/studio/note/one", "/docs"])
def test_uploaded_scripts_do_not_run_in_pages_of_the_server(
    site: Studio, entered: Any, browser: Any, path: str
) -> None:
    context = browser.new_context(storage_state=entered)
    page = context.new_page()
    page.goto(f"{origin_of(site)}{path}")
    page.locator("main h1, .operation").first.wait_for(state="attached")
    for kind in ("text/javascript", "module"):
        added = {"src": f"/uploads/own.js?{kind}", "type": kind}
        assert page.evaluate(ADD, ["script", added]) == "refused", kind
    assert page.evaluate("import('/uploads/own.js').then(() => 'loaded', () => 'refused')") == "refused"
    assert page.evaluate("typeof hacked") == "undefined"
    if path != "/docs":  # The page /docs may load other styles, because it contains no secrets.
        added = {"href": "/uploads/own.css", "rel": "stylesheet"}
        assert page.evaluate(ADD, ["link", added]) == "refused"
    context.close()


def test_no_page_needs_what_its_policy_blocks(
    site: Studio, entered: Any, new_page: Callable[..., Page], browser: Any
) -> None:
    page = new_page(storage_state=entered)
    page.add_init_script(WATCH)
    for path in PAGES:
        open_page(page, f"{site.url}{path}")
        assert page.evaluate("violations") == [], path
    page.goto(f"{origin_of(site)}/docs")
    page.locator(".operation").first.wait_for(state="attached")
    assert page.evaluate("violations") == []
    page.goto(f"{origin_of(site)}/")
    assert page.evaluate("violations") == []
    context = browser.new_context()  # A new context, because violations are recorded here.
    context.add_init_script(WATCH)
    watched = context.new_page()
    watched.goto(site.url)
    watched.evaluate("document.body.setAttribute('style', 'color: red')")
    until(lambda: "style-src-attr inline" in watched.evaluate("violations"))
    context.close()


@pytest.mark.parametrize("path", ["/studio", "/studio/note/one", "/docs", "/", "/uploads/own.html"])
def test_no_other_site_frames_a_page(
    site: Studio, foreign: Foreign, entered: Any, browser: Any, path: str
) -> None:
    context = browser.new_context(storage_state=entered)
    page = context.new_page()
    page.goto(foreign.url)
    page.evaluate(ADD, ["iframe", {"src": f"{origin_of(site)}{path}"}])
    assert page.frames[1].url.startswith("chrome-error:")
    context.close()


# "localhost" is a different site for the browser, "127.0.0.1" the same site.
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_other_origins_sign_nobody_in_and_write_nothing(
    site: Studio, foreign: Foreign, entered: Any, browser: Any, host: str
) -> None:
    context = browser.new_context(storage_state=entered)
    page = context.new_page()
    page.goto(foreign.url.replace("localhost", host))
    ours, ann = origin_of(site), {"identifier": "ann", "password": "slack water"}
    cookies, files = context.cookies(), files_of(site)
    body = json.dumps({"data": {"title": "Hacked"}})
    for method, path, sent in (
        ("POST", "/api/notes", body),
        ("PUT", "/api/notes/one", body),
        ("DELETE", "/api/notes/one", ""),
        ("POST", "/studio/-/session", json.dumps(ann)),
        ("DELETE", "/studio/-/session", ""),
    ):
        options = {"method": method, "credentials": "include", **({"body": sent} if sent else {})}
        for headers in ({}, HEADERS):
            assert page.evaluate(ASK, [f"{ours}{path}", {**options, "headers": headers}]) == "refused"
        page.evaluate(ASK, [f"{ours}{path}", {**options, "mode": "no-cors"}])
    for path in ("/api/notes", "/studio/-/session"):
        with page.expect_navigation(url=f"{ours}{path}") as answered:
            page.evaluate(SUBMIT, [f"{ours}{path}", {"data[title]": "Hacked", **ann}])
        assert answered.value.status == 403
        page.goto(foreign.url.replace("localhost", host))
    assert context.cookies() == cookies
    assert files_of(site) == files
    context.close()


def test_messages_of_other_windows_are_not_heard(
    site: Studio, foreign: Foreign, entered: Any, new_page: Callable[..., Page]
) -> None:
    page = new_page(storage_state=entered)
    page.goto(foreign.url)
    page.evaluate("addEventListener('message', ({data}) => { window.heard = data; })")
    with page.expect_popup() as opened:
        page.evaluate("url => { window.studio = open(url); }", f"{site.url}/note/one?panel=preview")
    studio = opened.value
    expect(studio.get_by_role("heading", name="Preview")).to_be_focused()  # the page moves the focus last
    studio.evaluate("addEventListener('message', ({data}) => { window.last = data.last; })")
    focus = studio.evaluate("document.activeElement.outerHTML")
    for type_ in ("previewReady", "strapiFieldFocusIntent", "strapiScript", "strapiFieldChange"):
        path = "documentId=one&path=title&model=api::note.note"
        payload = {"path": path, "script": SCRIPT, "field": "title", "value": "Hacked"}
        page.evaluate("said => studio.postMessage(said, '*')", {"type": type_, "payload": payload})
    page.evaluate("studio.postMessage({last: true}, '*')")
    until(lambda: studio.evaluate("window.last"))
    assert studio.evaluate("document.activeElement.outerHTML") == focus
    assert studio.evaluate("typeof hacked") == "undefined"
    expect(studio.get_by_label("Title", exact=True)).to_have_value("One")
    assert page.evaluate("typeof heard") == "undefined"


def test_no_address_log_or_history_has_what_people_sign_in_with(
    site: Studio, foreign: Foreign, new_page: Callable[..., Page]
) -> None:
    token = Accounts(site.root, "").create_token("docs", "read-only")
    password = "slack water"
    before = len(site.log.read_text())
    page, sent = new_page(), list[Any]()
    page.context.on("request", lambda request: sent.append(request))
    key = make_key(site.root)
    page.goto(f"{site.url}?key={key}")
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    assert page.url == site.url
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, "ann")
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    open_page(page, f"{site.url}/note/linked")
    page.get_by_role("button", name="Preview of Text").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="elsewhere").click()
    opened.value.wait_for_load_state()
    page.goto(f"{origin_of(site)}/docs")
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    page.get_by_text("operations for this token").wait_for()
    cookie = next(one["value"] for one in page.context.cookies() if one["name"].startswith("bifolio"))
    secrets = (key, token, cookie, password)
    addresses = [request.url for request in sent[1:]]
    assert len(addresses) > 20
    referers = [request.headers.get("referer", "") for request in sent]
    log = site.log.read_text()[before:]
    for secret in secrets:
        for text in (*addresses, *referers, *foreign.seen, log):
            assert secret not in text
            assert secret.replace(" ", "%20") not in text
    assert any(text.startswith("/link\n") for text in foreign.seen)
    assert not any("referer" in text.lower() or "picture.png" in text for text in foreign.seen)
    entries = page.context.new_cdp_session(page).send("Page.getNavigationHistory")["entries"]
    assert not [entry for entry in entries for secret in secrets if secret in entry["url"]]
