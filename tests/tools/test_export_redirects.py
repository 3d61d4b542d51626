"""Redirects in an export, which are the output of `bifolio redirects`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.config.public_site import REDIRECT_FILES
from server.service.public_site.redirect_formats import FORMATS
from tests.git import commit_all, git
from tests.service.public_site.test_redirects import FILES, SETTINGS, article
from tests.sites import write


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)


def make(root: Path, formats: str, settings: str = SETTINGS) -> Path:
    """Create a site whose article fog was once mist and haze, and has an alias."""
    write(root, {**FILES, "site.yaml": f"{settings}export: {{redirects: {formats}}}\n"})
    for slug in ("mist", "haze"):
        write(root, {"content/articles/fog.md": article(slug)})
        commit_all(root)
    write(root, {"content/articles/fog.md": article("fog", more='aliases: ["/x?p=12"]\n')})
    commit_all(root)
    return root


def test_each_file_is_the_output_of_the_command(tmp_path: Path) -> None:
    assert REDIRECT_FILES.keys() == FORMATS.keys()
    formats = [name for name in FORMATS if name != "cloudflare-pages"]
    root, out = make(tmp_path / "site", json.dumps(formats)), tmp_path / "out"
    done = run("export", out, "--site", root)
    assert done.exit_code == 0, done.output
    assert "1 redirect can't be written in a format that export.redirects sets" in done.output  # with a query
    for name in formats:
        text = (out / REDIRECT_FILES[name]).read_text()
        assert text == run("redirects", "--site", root, "--format", name).stdout
    assert "/articles/mist /articles/fog 301\n" in (out / "_redirects").read_text()
    manifest = json.loads((out / "bifolio-export.json").read_text())["files"]
    assert manifest["_redirects"]["request"] == ""


def test_a_format_that_is_no_longer_wanted_is_removed(tmp_path: Path) -> None:
    root, out = make(tmp_path / "site", "[cloudflare-pages, nginx]"), tmp_path / "out"
    run("export", out, "--site", root)
    assert (out / "_redirects").read_text().splitlines()[-1] == "/articles/mist/ /articles/fog 301"
    write(root, {"site.yaml": SETTINGS + "export: {redirects: nginx}\n"})
    assert run("export", out, "--site", root).exit_code == 0
    assert sorted(path.name for path in out.glob("*redirects*")) == ["redirects.conf"]
    write(root, {"site.yaml": SETTINGS})
    assert run("export", out, "--site", root).exit_code == 0
    assert not list(out.glob("*redirects*"))


def test_an_export_of_a_past_commit_has_the_redirects_of_that_commit(tmp_path: Path) -> None:
    root, out = make(tmp_path / "site", "netlify"), tmp_path / "out"
    run("export", out, "--site", root, "--at", "HEAD~1")
    assert (out / "_redirects").read_text() == "/articles/mist /articles/haze 301\n"
    assert git(root, "status", "--short") == ""


def test_aliases_that_contradict_each_other_are_counted(tmp_path: Path) -> None:
    root = make(tmp_path / "site", "netlify")
    write(root, {"content/articles/ferry.yaml": "title: F\nslug: ferry\naliases: [/articles/fog, /a#b]\n"})
    done = run("export", tmp_path / "out", "--site", root)
    assert done.exit_code == 0
    assert (
        "! no redirects could be generated from 2 aliases. Run `bifolio redirects` to see the reasons."
        in done.output
    )


def test_a_file_for_one_host_is_refused_for_several(tmp_path: Path) -> None:
    settings = SETTINGS.replace('"https://example.org/fr/', '"https://example.fr/')
    root = make(tmp_path / "site", "netlify", settings)
    write(root, {"content/articles/fog.fr.md": article("brume", more="aliases: [/nuage]\n")})
    done = run("export", tmp_path / "out", "--site", root)
    assert done.exit_code == 1
    assert done.output.startswith("bifolio: site.yaml: export.redirects: the format netlify can't contain")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("formats", "words"),
    [
        ("netlfy", 'unknown format "netlfy" in export.redirects. Did you mean "netlify"?'),
        ("[netlify, cloudflare-pages]", "which both write the file _redirects. Keep one of them."),
    ],
)
def test_a_wrong_setting_is_refused(tmp_path: Path, formats: str, words: str) -> None:
    write(tmp_path / "site", {**FILES, "site.yaml": f"{SETTINGS}export: {{redirects: {formats}}}\n"})
    done = run("export", tmp_path / "out", "--site", tmp_path / "site")
    assert done.exit_code == 1
    assert words in done.output
