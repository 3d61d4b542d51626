"""Tests of the Dockerfile that do not build an image."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LAST = DOCKERFILE.rpartition("\nFROM ")[2]


def installed() -> set[str]:
    """Return the packages that the Dockerfile passes to `pip install`, including Bifolio with its extras."""
    (told,) = re.findall(r"pip --python \S+ install (.*?)(?: \\\n|$)", DOCKERFILE)
    return {word.strip("'") for word in told.split() if not word.startswith("-")}


def test_whatever_a_site_can_be_set_to_use_is_in_the_image() -> None:
    """The image has no pip to install extras later. It uses Debian's libpq instead of the one in
    psycopg[binary].
    """
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for_development = {"audit", "dev", "openapi", "studio"}
    (postgres,) = extras["postgres"]
    wanted = ",".join(sorted(set(extras) - for_development - {"postgres"}))
    assert installed() == {f".[{wanted}]", postgres.replace("[binary]", "")}
    assert " libpq5 " in DOCKERFILE


def test_what_is_removed_is_in_no_layer() -> None:
    assert LAST.startswith("scratch\nCOPY --from=system / /\n")
    removed = DOCKERFILE.partition("dpkg --purge")[2].partition("&&")[0].split()
    assert {"apt", "perl-base"} <= set(removed)
    assert "__pycache__" in DOCKERFILE.partition("COPY --from=build /opt/bifolio")[2]


def test_libraries_of_wheels_find_what_they_need_of_debian() -> None:
    removed = DOCKERFILE.partition("dpkg --purge")[2].partition("&&")[0].split()
    assert "libstdc++6" not in removed  # required by Pillow's libavif
    # Don't strip lib*.so.1 in *.libs/, because auditwheel has modified these files.
    assert "-name '*.so' -exec strip" in DOCKERFILE


def test_it_runs_as_a_user_that_owns_the_site_alone() -> None:
    assert "\nUSER bifolio\n" in LAST
    assert "\nVOLUME /site\n" in LAST
    assert "install --directory --owner bifolio --group bifolio /home/bifolio /site" in LAST
