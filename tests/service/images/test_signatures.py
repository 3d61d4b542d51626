"""Tests of signed image URLs."""

from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.auth.session_key import rotate_key
from server.commands.cli import main
from server.config.transformation import PARAMETERS
from server.errors import SetupError
from server.service.images.signatures import is_signed, sign_url
from tests.api.test_images import UPLOADS, fetch, shown
from tests.api.test_upload import FILES
from tests.sites import make, write

URL = "/uploads/b/c%20d.png?w=40&fm=webp"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, {"site.yaml": "media: {transform: {sign: true}}\n"})
    return tmp_path


def check(root: Path, url: str) -> bool:
    parts = urlsplit(url)
    return is_signed(root, unquote(parts.path.removeprefix("/uploads/")), dict(parse_qsl(parts.query)))


def test_a_signature_is_valid_for_one_path_and_its_parameters(root: Path) -> None:
    signed = sign_url(root, URL)
    assert signed.startswith("/uploads/b/c%20d.png?w=40&fm=webp&s=")
    assert check(root, signed)
    assert check(root, signed + "&v=3")
    assert sign_url(root, signed) == signed
    for changed in (
        signed.replace("w=40", "w=41"),
        signed.replace("c%20d", "e"),
        signed + "&q=5",
        URL,
        signed[:-1],
    ):
        assert not check(root, changed)


def test_a_preset_alone_needs_no_signature(root: Path) -> None:
    assert check(root, "/uploads/a.png?key=hero")
    assert not check(root, "/uploads/a.png?key=hero&w=40")


def test_a_signature_is_valid_until_the_grace_period_of_its_key_ends(root: Path) -> None:
    signed = sign_url(root, URL)
    rotate_key(root, 3600)
    assert check(root, signed)
    rotate_key(root, 3600)
    assert not check(root, signed)


@pytest.mark.parametrize("url", ["/uploads/a.png", "/a.png?w=4", "x", "/uploads/a.png?s=4"])
def test_only_urls_of_transformed_images_are_signed(root: Path, url: str) -> None:
    with pytest.raises(SetupError, match="is not the URL of a transformed image"):
        sign_url(root, url)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(PARAMETERS), texts, min_size=1), st.text("ab/ %?&=\u00e9", min_size=1))
def test_every_url_can_be_signed(root: Path, parameters: dict[str, str], path: str) -> None:

    signed = sign_url(root, f"/uploads/{quote(path)}?{urlencode(parameters)}")
    assert check(root, signed)


def test_only_signed_urls_are_transformed(tmp_path: Path) -> None:
    api = make(tmp_path, {**FILES, **UPLOADS, "site.yaml": "media: {transform: {sign: true}}\n"})
    answer = fetch(api, URL)
    assert (answer.status, answer.error["name"]) == (403, "ForbiddenError")
    assert "media.transform.sign" in answer.error["message"]
    for odd in ("s", "s=a&s=b", "s[x]=a", "w=40&s=a", "w=41&s=a"):
        assert fetch(api, f"{URL}&{odd}").status in (400, 403)
    printed = CliRunner().invoke(main, ["media", "sign", "--site", str(tmp_path), URL])
    assert shown(fetch(api, printed.output.strip())) == ((40, 20), "WEBP")
    assert fetch(api, "/uploads/a.png").status == 200
    api.accounts.close()


@pytest.mark.parametrize(
    ("url", "note"),
    [
        ("/uploads/a.png?w=abc", 'Note: w must be a whole number from 1 to 3840 (found "abc")'),
        ("/uploads/a.png?w=4000", "Note: width must be at most 3840, the value of media.transform.max_edge"),
        ("/uploads/none.png?w=40", 'Note: there is no media file "none.png"'),
        ("/uploads/small_a.png?w=40", ""),
        ("/uploads/stored.png?w=40", ""),
    ],
)
def test_a_url_that_the_server_would_reject_is_signed_with_a_note(
    tmp_path: Path, url: str, note: str
) -> None:
    stored = {"content/uploads/stored.png.yaml": "provider: bucket\n"}
    write(tmp_path, {**FILES, **UPLOADS, **stored, "site.yaml": "media: {transform: {sign: true}}\n"})
    printed = CliRunner().invoke(main, ["media", "sign", "--site", str(tmp_path), url])
    assert (printed.exit_code, printed.stdout.count("&s=")) == (0, 1)
    assert printed.stderr.startswith(note) if note else not printed.stderr
