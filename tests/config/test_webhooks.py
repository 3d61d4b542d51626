"""Tests of `webhooks` in site.yaml: valid and invalid values, and values from environment variables."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from server.config.model import Settings
from server.config.reader import check_subjects, read_settings, survey_settings
from server.config.webhooks import Webhook, check_environment, resolve_environment
from server.errors import SetupError

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def read(root: Path, text: str) -> tuple[Settings, list[SetupError]]:
    (root / "site.yaml").write_text(text)
    return survey_settings(root)


def test_a_webhook_with_everything(tmp_path: Path) -> None:
    settings, wrong = read(
        tmp_path,
        f"""
locales: {{available: [en, fr]}}
webhooks_allow: [127.0.0.1, Build.internal, "Build.internal:080", "::1", "[::1]:81"]
webhooks:
  - name: build
    url: https://example.org/hook?x=1
    events: [entry.*, media.create]
    types: article
    locales: fr
    status: [published]
    debounce: 10s
    headers: {{Authorization: env:TOKEN, X-A: b}}
    secret: [{SECRET}, env:OLD]
    enabled: false
  - {{name: other, url: env:HOOK}}
""",
    )
    assert wrong == []
    assert settings.webhooks_allow == (
        "127.0.0.1",
        "build.internal",
        "build.internal:80",
        "::1",
        "[::1]:81",
    )
    assert settings.webhooks == (
        Webhook(
            name="build",
            url="https://example.org/hook?x=1",
            events=("entry.*", "media.create"),
            types=("article",),
            locales=("fr",),
            status=("published",),
            debounce=timedelta(seconds=10),
            headers={"Authorization": "env:TOKEN", "X-A": "b"},
            secrets=(SECRET, "env:OLD"),
            enabled=False,
        ),
        Webhook(name="other", url="env:HOOK"),
    )
    assert SECRET not in repr(settings)


# The text below `webhooks:`, and the expected line and message.
WRONG = {
    # The value could contain a secret.
    "  name: a": (1, "webhooks must be a list"),
    "  - https://a.example/hunter2": (2, "webhooks must be a list of mappings"),
    "  - {name: a, url: [hunter2]}": (2, "url must be a string"),
    "  - {name: a, url: env:A, headers: hunter2}": (2, "headers must be a mapping"),
    "  - {name: a, url: env:A, headers: {X-A: [hunter2]}}": (2, "headers.X-A must be a string"),
    "  - {name: a, url: env:A, secret: {hunter2: b}}": (2, "secret must be a list of strings"),
    "  - {url: 'https://a.example'}": (2, 'invalid webhook name ""'),
    "  - {name: a}": (2, "url is missing"),
    "  - {name: a/b, url: 'https://a.example'}": (2, 'invalid webhook name "a/b"'),
    "  - name: a\n    url: ftp://a.example": (3, "url must begin with https:// or http://"),
    "  - name: a\n    url: https://u:p@a.example": (
        3,
        "url must not contain a user name",
    ),
    "  - name: a\n    url: https://a.example:99999": (3, "url is not a valid URL"),
    "  - name: a\n    url: https:///x": (3, "url is not a valid URL"),
    '  - name: a\n    url: "https://a.example/\\r\\nX: y"': (
        3,
        "url contains characters that must be percent-encoded",
    ),
    "  - name: a\n    url: env:1": (
        3,
        'url: "env:1" is not "env:" followed by the name of an environment variable',
    ),
    "  - name: a\n    url: env:BIFOLIO_JWT_SECRET": (
        3,
        "url: the variable BIFOLIO_JWT_SECRET is reserved for Bifolio",
    ),
    "  - name: a\n    url: env:A\n    headers: {X-A: env:PGPASSWORD}": (
        4,
        "headers.X-A: the variable PGPASSWORD is reserved for Bifolio",
    ),
    "  - name: a\n    url: env:AWS_SECRET_ACCESS_KEY": (
        3,
        "url: the variable AWS_SECRET_ACCESS_KEY is reserved for Bifolio",
    ),
    "  - name: a\n    url: env:A\n    colour: red": (4, 'unknown key "colour" in a webhook'),
    "  - name: a\n    url: env:A\n    events: [entry.creat]": (4, 'unknown event "entry.creat"'),
    "  - name: a\n    url: env:A\n    status: [Draft]": (
        4,
        '"status" must be "published" or "draft" (found "Draft")',
    ),
    "  - name: a\n    url: env:A\n    locales: [fr]": (
        4,
        'unknown locale "fr" in the webhook "a"',
    ),
    "  - name: a\n    url: env:A\n    debounce: 10": (
        4,
        'debounce must be a duration (found "10")',
    ),
    "  - name: a\n    url: env:A\n    debounce: 2h": (
        4,
        'debounce must not be longer than one hour (found "2h")',
    ),
    "  - name: a\n    url: env:A\n    secret: abc": (
        4,
        'secret must be "whsec_" followed by 24 to 64 bytes in base64',
    ),
    "  - name: a\n    url: env:A\n    enabled: no": (
        4,
        'enabled must be true or false (found "no")',
    ),
    '  - name: a\n    url: env:A\n    headers:\n      X-A: "b\\r\\nX-B: c"': (
        5,
        "headers.X-A contains characters that are not allowed in HTTP headers",
    ),
    '  - name: a\n    url: env:A\n    headers:\n      "X\\r\\nY": c': (
        5,
        'invalid header name "X\\r\\nY"',
    ),
    "  - name: a\n    url: env:A\n    headers:\n      Webhook-Id: c": (
        5,
        'the header "Webhook-Id" is listed twice, or is one that Bifolio sets itself',
    ),
    "  - name: a\n    url: env:A\n    headers:\n      A: c\n      a: d": (
        6,
        'the header "a" is listed twice, or is one that Bifolio sets itself',
    ),
    "  - {name: a, url: env:A}\n  - {name: a, url: env:A}": (3, 'two webhooks are named "a"'),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    _, wrong = read(tmp_path, f"webhooks:\n{text}\n")
    assert [(error.line, error.message) for error in wrong] == [WRONG[text]]


@pytest.mark.parametrize(
    "host", ["https://a.example", "a.example/x", "u@a", "[::1]", "a:b", "a:0", "a:65536", "::1]:80"]
)
def test_a_host_is_no_address_of_a_page(tmp_path: Path, host: str) -> None:
    _, (wrong,) = read(tmp_path, f"webhooks_allow:\n  - a\n  - '{host}'\n")
    assert (wrong.line, wrong.message) == (3, f'webhooks_allow must be a list of hosts (found "{host}")')


def test_a_type_that_there_is_not_is_a_warning(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, "webhooks:\n  - name: a\n    url: env:A\n    types: [upload, articel]\n")
    (problem,) = check_subjects(settings, {"article": object()})
    assert (problem.line, problem.message) == (4, 'unknown content type "articel" in the webhook "a"')
    assert problem.column == 21


HOOK = """webhooks:
  - name: build
    url: env:HOOK
    headers: {X-Key: env:KEY}
    secret: env:SECRET
"""
SET = {"HOOK": "https://a.example/", "KEY": "k", "SECRET": SECRET}


def test_values_of_the_environment_are_put_in_when_they_are_needed(tmp_path: Path) -> None:
    settings, wrong = read(tmp_path, HOOK)
    assert wrong == []
    found = resolve_environment(settings.webhooks[0], SET)
    assert (found.url, found.headers, found.secrets) == ("https://a.example/", {"X-Key": "k"}, (SECRET,))


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {},
            'site.yaml:3: the environment variable HOOK, which the webhook "build" uses, is not set. Set '
            "the variable, or ",
        ),
        (
            {**SET, "HOOK": "ftp://x"},
            'site.yaml:3: the value of the environment variable HOOK, which the webhook "build" uses, is '
            "invalid: it must begin with https://",
        ),
        (
            {**SET, "KEY": "a\nb"},
            'site.yaml:4: the value of the environment variable KEY, which the webhook "build" uses, is '
            "invalid: it contains characters that ",
        ),
        (
            {**SET, "SECRET": "x"},
            'site.yaml:5: the value of the environment variable SECRET, which the webhook "build" uses, is '
            'invalid: it must be "whsec_',
        ),
    ],
)
def test_a_variable_that_is_not_there_is_named_with_its_line(
    tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    settings, _ = read(tmp_path, HOOK)
    with pytest.raises(SetupError) as caught:
        check_environment(settings.webhooks, environment)
    assert str(caught.value).startswith(message)
    check_environment([replace(webhook, enabled=False) for webhook in settings.webhooks], environment)


def test_what_only_a_server_needs_is_not_asked_for_by_commands(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(HOOK)
    assert read_settings(tmp_path).webhooks[0].url == "env:HOOK"
