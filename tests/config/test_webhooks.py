"""The `webhooks` of site.yaml: what is read, what is refused with its line, and values of the environment."""

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
webhooks_allow: [127.0.0.1, Build.internal]
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
    assert settings.webhooks_allow == ("127.0.0.1", "build.internal")
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


# What is below `webhooks:`, and the line and message that say what is wrong.
WRONG = {
    "  name: a": (1, '"webhooks" must be a list'),
    "  - a": (2, 'an entry of "webhooks" is no mapping'),
    "  - {url: 'https://a.example'}": (2, '"" can\'t be the name of a webhook'),
    "  - {name: a}": (2, '"url" is missing'),
    "  - {name: a/b, url: 'https://a.example'}": (2, '"a/b" can\'t be the name of a webhook'),
    "  - name: a\n    url: ftp://a.example": (3, '"url" must begin with https:// or http://'),
    "  - name: a\n    url: https://u:p@a.example": (
        3,
        '"url" has a user in it; send a header Authorization instead',
    ),
    "  - name: a\n    url: https://a.example:99999": (3, '"url" is no address'),
    "  - name: a\n    url: https:///x": (3, '"url" is no address'),
    '  - name: a\n    url: "https://a.example/\\r\\nX: y"': (
        3,
        '"url" has characters that must be percent-encoded',
    ),
    "  - name: a\n    url: env:1": (3, '"env:1" names no variable of the environment'),
    "  - name: a\n    url: env:BIFOLIO_JWT_SECRET": (3, "BIFOLIO_JWT_SECRET is for Bifolio alone"),
    "  - name: a\n    url: env:A\n    headers: {X-A: env:PGPASSWORD}": (4, "PGPASSWORD is for Bifolio alone"),
    "  - name: a\n    url: env:AWS_SECRET_ACCESS_KEY": (3, "AWS_SECRET_ACCESS_KEY is for Bifolio alone"),
    "  - name: a\n    url: env:A\n    colour: red": (4, 'the key "colour" of a webhook is not known'),
    "  - name: a\n    url: env:A\n    events: [entry.creat]": (4, 'there is no event "entry.creat"'),
    "  - name: a\n    url: env:A\n    status: [Draft]": (4, '"Draft" is no status'),
    "  - name: a\n    url: env:A\n    locales: [fr]": (
        4,
        'webhook a names the locale "fr", which the site has not',
    ),
    "  - name: a\n    url: env:A\n    debounce: 10": (4, '"10" is no length of time'),
    "  - name: a\n    url: env:A\n    debounce: 2h": (4, '"debounce" is longer than an hour'),
    "  - name: a\n    url: env:A\n    secret: abc": (
        4,
        '"secret" must be whsec_ and 24 to 64 bytes in base64',
    ),
    "  - name: a\n    url: env:A\n    enabled: no": (4, '"enabled" must be true or false'),
    '  - name: a\n    url: env:A\n    headers:\n      X-A: "b\\r\\nX-B: c"': (
        5,
        '"headers.X-A" has characters that no header can have',
    ),
    '  - name: a\n    url: env:A\n    headers:\n      "X\\r\\nY": c': (
        5,
        '"X\\r\\nY" can\'t be the name of a header',
    ),
    "  - name: a\n    url: env:A\n    headers:\n      Webhook-Id: c": (
        5,
        'the header "Webhook-Id" is set already',
    ),
    "  - name: a\n    url: env:A\n    headers:\n      A: c\n      a: d": (6, 'the header "a" is set already'),
    "  - {name: a, url: env:A}\n  - {name: a, url: env:A}": (3, 'there are two webhooks "a"'),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    _, wrong = read(tmp_path, f"webhooks:\n{text}\n")
    assert [(error.line, error.message) for error in wrong] == [WRONG[text]]


@pytest.mark.parametrize("host", ["https://a.example", "a.example/x", "u@a", "[::1]"])
def test_a_host_is_no_address_of_a_page(tmp_path: Path, host: str) -> None:
    _, (wrong,) = read(tmp_path, f"webhooks_allow:\n  - a\n  - '{host}'\n")
    assert (wrong.line, wrong.message) == (3, f'"{host}" is no host')


def test_a_type_that_there_is_not_is_a_warning(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, "webhooks:\n  - name: a\n    url: env:A\n    types: [upload, articel]\n")
    (problem,) = check_subjects(settings, {"article": object()})
    assert (problem.line, problem.message) == (4, 'webhook a names "articel", which is no content type')


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
        ({}, "site.yaml:3: webhook build: the environment has no HOOK (set it, or write enabled: false)"),
        ({**SET, "HOOK": "ftp://x"}, "site.yaml:3: webhook build: HOOK must begin with https:// or http://"),
        ({**SET, "KEY": "a\nb"}, "site.yaml:4: webhook build: KEY has characters that no header can have"),
        ({**SET, "SECRET": "x"}, "site.yaml:5: webhook build: SECRET must be whsec_"),
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
