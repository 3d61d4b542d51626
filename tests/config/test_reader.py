"""Tests of reading site.yaml: the result is either settings or an error for each wrong line."""

from datetime import timedelta
from pathlib import Path

import pytest

from server.config.mcp import ResultText, WriteMode
from server.config.model import DEFAULTS, KEYS, ResponseFormat, Settings, value_of, with_values
from server.config.reader import ENTRIES, READERS, survey_settings
from server.errors import SetupError


def read(root: Path, text: str) -> tuple[Settings, list[SetupError]]:
    (root / "site.yaml").write_text(text)
    return survey_settings(root)


def lines(wrong: list[SetupError]) -> list[tuple[int | None, str]]:
    return [(error.line, error.message) for error in wrong]


@pytest.mark.parametrize("text", ["", "# nothing\n", "name:\napi: ~\n", "api: {page_size: {}, cors: null}\n"])
def test_what_is_not_said_has_its_default(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == (DEFAULTS, [])


def test_a_site_without_the_file_has_the_defaults(tmp_path: Path) -> None:
    assert survey_settings(tmp_path) == (DEFAULTS, [])


# A line of site.yaml, the setting that it changes, and the value.
SAID = {
    "name: Slack Water": ("name", "Slack Water"),
    "api: {page_size: {default: 7}}": ("api.page_size.default", 7),
    "api: {page_size: {max: 30}}": ("api.page_size.max", 30),
    "api: {page_size: {default: 300}}": ("api.page_size.max", 300),
    "api: {populate_with_pagination: allow}": ("api.populate_with_pagination", True),
    "api: {format: v4}": ("api.format", ResponseFormat.V4),
    "api: {populate: {page: '*', home: {a: {populate: [b, c]}, d: true}}}": (
        "api.populate",
        {"page": "*", "home": {"a": {"populate": ["b", "c"]}, "d": "true"}},
    ),
    "api: {upload_limit: 3 kB}": ("api.upload_limit", 3000),
    "api: {upload_limit: 3}": ("api.upload_limit", 3),
    "api: {cors: https://a.example}": ("api.cors", ("https://a.example",)),
    "api: {cors: [https://a.example, https://b.example]}": (
        "api.cors",
        ("https://a.example", "https://b.example"),
    ),
    "api: {cors: ['*']}": ("api.cors", ("*",)),
    "api: {trusted_proxies: 127.0.0.1}": ("api.trusted_proxies", ("127.0.0.1",)),
    "api: {trusted_proxies: ['::1', 10.0.0.0/8]}": ("api.trusted_proxies", ("::1", "10.0.0.0/8")),
    "api: {cors: ['http://localhost:3000', 'http://[::1]:80', 'capacitor://localhost', 'null']}": (
        "api.cors",
        ("http://localhost:3000", "http://[::1]:80", "capacitor://localhost", "null"),
    ),
    "api: {rate_limit: 10 per minute}": ("api.rate_limit", "10 per minute"),
    "auth: {session: 12h}": ("auth.session", timedelta(hours=12)),
    "git: {remote: origin}": ("git.remote", "origin"),
    "git: {remote: origin, branch: drafts/next}": ("git.branch", "drafts/next"),
    "git: {remote: origin, follow: 2s}": ("git.follow", timedelta(seconds=2)),
    "git: {remote: origin, follow: off}": ("git.follow", None),
    "git: {remote: origin, push: before}": ("git.push", "before"),
    "git: {remote: origin, push: off}": ("git.push", ""),
    "git: {push: off, follow: off}": ("git.commit", None),
    "git: {remote: origin, push: after}": ("git.commit", timedelta()),
    "git: {remote: origin, push: after, commit: each}": ("git.commit", timedelta()),
    "auth: {confirm_email: true}": ("auth.confirm_email", True),
    "mcp: {enabled: true}": ("mcp.enabled", True),
    "mcp: {write: direct}": ("mcp.write", WriteMode.DIRECT),
    "mcp: {branch: 'bots/{caller}/x'}": ("mcp.branch", "bots/{caller}/x"),
    "mcp: {text: summary}": ("mcp.text", ResultText.SUMMARY),
    "mcp: {max_bytes: 32 kB}": ("mcp.max_bytes", 32_000),
    "mcp: {upload_from: Images.example.org}": ("mcp.upload_from", ("images.example.org",)),
    "mail: {port: 587}": ("mail.port", 587),
    "locales: {available: [fr, en, fr]}": ("locales.available", ("fr", "en")),
    "locales: {available: [fr]}": ("locales.default", "fr"),
    "locales: {default: fr}": ("locales.available", ("fr",)),
    "check: {ignore: {unclaimed: a/*}}": ("check.ignore", {"unclaimed": ("a/*",)}),
    "search: {weights: {title: 6, article.summary: 0.5}}": (
        "search.weights",
        {"title": 6.0, "article.summary": 0.5},
    ),
    "roles: {public: {article: [find]}, staff: {}}": (
        "roles",
        {"public": frozenset({"article.find"}), "authenticated": frozenset(), "staff": frozenset()},
    ),
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_said_counts(tmp_path: Path, text: str) -> None:
    settings, wrong = read(tmp_path, text)
    key, value = SAID[text]
    assert wrong == []
    assert value_of(settings, key) == value


# A wrong site.yaml, and the expected lines and messages.
WRONG = {
    "name: [a]": [(1, "name must be a string (found a list)")],
    "api: 3": [(1, 'api must be a mapping (found "3")')],
    "api:\n  cors: {}": [(2, "api.cors must be a list of strings (found a mapping)")],
    "api:\n  trusted_proxies: [10.0.0.1, 10.0.0.1/8]": [
        (2, 'api.trusted_proxies must be a list of IP addresses or networks (found "10.0.0.1/8")')
    ],
    "api: {trusted_proxies: proxy.example}": [
        (1, 'api.trusted_proxies must be a list of IP addresses or networks (found "proxy.example")')
    ],
    "mcp: {write: brunch}": [(1, 'mcp.write must be "branch", "direct" or "none" (found "brunch")')],
    "mcp: {branch: agent}": [(1, 'mcp.branch must contain {caller} (found "agent")')],
    "mcp: {branch: '{caller}..'}": [(1, 'mcp.branch must be a valid branch name (found "{caller}..")')],
    "mcp: {text: jsn}": [(1, 'mcp.text must be "json" or "summary" (found "jsn")')],
    "mcp:\n  max_bytes: 100": [(2, 'mcp.max_bytes must be at least 16 kB (found "100")')],
    "api: {page_size: {max: 0}}": [(1, 'api.page_size.max must be a whole number above 0 (found "0")')],
    "api: {page_size: {max: .inf}}": [(1, "api.page_size.max: .inf can't be written in JSON")],
    "auth: {session: 30}": [(1, 'auth.session must be a duration (found "30")')],
    "auth: {confirm_email: no}": [(1, 'auth.confirm_email must be true or false (found "no")')],
    "search:\n  weights:\n    title: 101\n    body: .nan": [
        (3, 'search.weights.title must be a number from 0 to 100 (found "101")'),
        (4, "search.weights.body: .nan can't be written in JSON"),
    ],
    "roles:\n  public:\n    a: [fnd]\n    b: [find, creat]\n  x: [a]": [
        (5, "roles.x must be a mapping (found a list)"),
        (3, 'unknown action "fnd" in the permissions for a'),
        (4, 'unknown action "creat" in the permissions for b'),
    ],
    "api:\n  cors: https://*.example.org": [
        (2, 'api.cors must be a list of origins (found "https://*.example.org")')
    ],
    "api:\n  cors:\n    - https://a.example\n    - https://a.example/": [
        (4, 'api.cors must be a list of origins (found "https://a.example/")')
    ],
    "api: {cors: [a.example]}": [(1, 'api.cors must be a list of origins (found "a.example")')],
    "api: {cors: [https://A.example]}": [
        (1, 'api.cors must be a list of origins (found "https://A.example")')
    ],
    "locales: {default: '!', available: [en]}": [(1, 'locales.default must be a locale code (found "!")')],
    "locales:\n  available: [en, '!']": [(2, 'locales.available must be a list of locale codes (found "!")')],
    "git: {remote: 'https://me:secret@example.org/x.git'}": [
        (1, "git.remote must be the name of a git remote")
    ],
    "git: {remote: --upload-pack=x}": [(1, "git.remote must be the name of a git remote")],
    "git:\n  remote: origin\n  branch: a..b": [(3, 'git.branch must be a valid branch name (found "a..b")')],
    "git:\n  remote: origin\n  branch: -f": [(3, 'git.branch must be a valid branch name (found "-f")')],
    "git:\n  remote: origin\n  follow: often": [(3, 'git.follow must be a duration (found "often")')],
    "git:\n  remote: origin\n  push: always": [
        (3, 'git.push must be "before", "after" or "off" (found "always")')
    ],
    "git:\n  remote: origin\n  push: before\n  commit: 30s": [
        (4, 'git.commit must be "each", because git.push is "before" (found "30s")')
    ],
    "git:\n  remote: origin\n  commit: off\n  push: after": [
        (3, 'git.commit must be "each", because git.push is "after" (found "off")')
    ],
    "git:\n  push: before\n  follow: 2s": [
        (3, "git.follow requires git.remote, which is not set"),
        (2, "git.push requires git.remote, which is not set"),
    ],
}


@pytest.mark.parametrize("text", WRONG)
def test_everything_that_is_wrong_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    assert lines(read(tmp_path, text)[1]) == WRONG[text]


def test_what_is_wrong_leaves_the_rest_as_it_is_said(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, "name: Slack Water\napi: {page_size: {max: many}}\n")
    assert (settings.name, settings.api.page_size.max) == ("Slack Water", DEFAULTS.api.page_size.max)


def test_every_key_says_what_it_holds_in_a_word_that_has_a_reader() -> None:
    assert {key.value_type for key in KEYS.values()} == READERS.keys() | ENTRIES.keys()


def test_each_key_has_a_value_of_its_own() -> None:
    for key in KEYS:
        settings = with_values(DEFAULTS, {key: "replaced"})
        assert [other for other in KEYS if value_of(settings, other) != value_of(DEFAULTS, other)] == [key]


def test_an_action_gets_a_suggestion_only_where_it_is_much_like_it(tmp_path: Path) -> None:
    _, (like, other) = read(tmp_path, "roles:\n  public:\n    a: [finds, read]\n")
    assert like.fix == 'did you mean "find"?'
    assert other.fix.startswith("use one of find, ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("media: {store: 'https://b'}", "site.yaml:1:16: media.store must be the URL of a bucket"),
        ("media: {store: 's3://id:secret@bucket/x'}", "AWS_ACCESS_KEY_ID"),
        ("media: {store: 's3://bucket/../x'}", "media.store must be the URL of a bucket"),
        ("media: {store: 's3://bucket', access_key_id: x}", "AWS_ACCESS_KEY_ID"),
        ("media: {store: 's3://bucket', secret: x}", "AWS_SECRET_ACCESS_KEY"),
        (
            "media: {store: 's3://bucket', endpoint: 'http://id:secret@s3.example.org'}",
            "must not contain credentials",
        ),
        (
            "media: {store: 's3://bucket', public_url: '/media'}",
            'must be a URL without a query string (found "/media")',
        ),
        ("media: {store: 's3://bucket', serve: redirect}", "media.public_url is missing"),
        (
            "media: {store: 's3://bucket', serve: nope}",
            'must be one of redirect, stream, sign (found "nope")',
        ),
        (
            "media: {public_url: 'https://media.example.org'}",
            "media.public_url requires media.store, which is not set",
        ),
    ],
)
def test_a_bucket_that_is_set_wrongly_is_refused(tmp_path: Path, text: str, says: str) -> None:
    assert says in "; ".join(map(str, read(tmp_path, text)[1]))


@pytest.mark.parametrize(
    "end",
    [
        "?a=b",
        "?",
        "#a",
        "#",
        "/a b",
        "\\\\evil.org",
        ":0",
        ":65536",
        ":x",
        "/a\\n",
        "/a\\tb",
        "/\\u2028",
        '/<a>"',
    ],
)
def test_a_public_url_can_be_the_beginning_of_links(tmp_path: Path, end: str) -> None:
    quoted = end.replace('"', '\\"')
    [error] = read(tmp_path, f'public_url: "https://cms.example.org{quoted}"')[1]
    assert "public_url must be a URL" in str(error)
    settings, wrong = read(tmp_path, "public_url: https://cms.example.org:8443/path/")
    assert (settings.public_url, wrong) == ("https://cms.example.org:8443/path", [])


# A wrong item of a list in site.yaml, and the place and the message of the error.
ITEMS = {
    "media:\n  transform:\n    widths: [320, 640, abc]": (
        (3, 24),
        'media.transform.widths must be "any" or a list of whole numbers above 0 (found "abc")',
    ),
    "media:\n  transform:\n    widths:\n      - 320\n      - -1\n      - 640": (
        (5, 9),
        'media.transform.widths must be "any" or a list of whole numbers above 0 (found "-1")',
    ),
    "media: {transform: {widths: [1, 320.5]}}": (
        (1, 33),
        'media.transform.widths must be "any" or a list of whole numbers above 0 (found "320.5")',
    ),
    "media: {transform: {widths: [1, .inf]}}": (
        (1, 33),
        "media.transform.widths: .inf can't be written in JSON",
    ),
    "media: {transform: {widths: []}}": (
        (1, 21),
        'media.transform.widths must be "any" or a list of whole numbers above 0 (found a list)',
    ),
    "media: {transform: {widths: [4000, 1], max_edge: 3000}}": (
        (1, 30),
        'media.transform.widths must contain only numbers up to 3000 (found "4000")',
    ),
    "media: {transform: {qualities: [50, 101]}}": (
        (1, 37),
        'media.transform.qualities must contain only numbers up to 100 (found "101")',
    ),
    "media: {transform: {formats: [webp, gif]}}": (
        (1, 37),
        'unknown image format "gif" in media.transform.formats',
    ),
    "export:\n  redirects: [nginx, apach]": ((2, 22), 'unknown format "apach" in export.redirects'),
    "api:\n  cors:\n    - https://a.example\n    - {a: b}": (
        (4, 7),
        "api.cors must be a list of strings (found a mapping)",
    ),
    "webhooks:\n  - name: a\n    url: https://a.example\n    events: [entry.create, entry.creat]": (
        (4, 28),
        'unknown event "entry.creat"',
    ),
    "webhooks:\n  - name: a\n    url: https://a.example\n    status:\n      - draft\n      - drft": (
        (6, 9),
        '"status" must be "published" or "draft" (found "drft")',
    ),
    "webhooks:\n  - name: a\n    url: https://a.example\n    locales: [en, xx]": (
        (4, 19),
        'unknown locale "xx" in the webhook "a"',
    ),
    "media:\n  transform:\n    max_edge: 1000\n    presets:\n      a: {w: 400}\n      b: {h: 9, w: 1001}": (
        (6, 20),
        "media.transform.presets.b.w must not be larger than media.transform.max_edge, 1000 (found 1001)",
    ),
    "media: {formats: {card: {height: 2000, dpr: 2}}}": (
        (1, 34),
        "media.formats.card.height times 2 must not be larger than media.transform.max_edge, 3840"
        " (found 4000)",
    ),
}


@pytest.mark.parametrize("text", ITEMS)
def test_the_item_that_is_wrong_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    [error] = read(tmp_path, text)[1]
    assert ((error.line, error.column), error.message) == ITEMS[text]


def test_a_bucket_is_set(tmp_path: Path) -> None:
    text = "media: {store: 's3://a.bucket/a/b/', public_url: 'https://m.org/x/'}"
    settings, _ = read(tmp_path, text)
    assert (settings.media.store, settings.media.public_url) == ("s3://a.bucket/a/b", "https://m.org/x")
