"""Tests that docs/licences.tsv lists every installed package with a licence that is compatible with MIT."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from docs.licences import LICENCES, bundled_packages

PROJECT = tomllib.loads(Path("pyproject.toml").read_text())["project"]
EXTRAS = ("postgres", "redis", "s3")  # the extras for people who run a site
PERMISSIVE = {
    "Apache-2.0",
    "Artistic-1.0-Perl",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "PSF-2.0",
    "Unlicense",
}
# Programs with a different licence may import packages with these licences, if they don't modify the
# packages.
WEAK_COPYLEFT = {"LGPL-3.0-only", "MPL-2.0"}
# SPDX names for licences that packages name differently.
SPELLED = {
    "Apache 2": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Artistic License": "Artistic-1.0-Perl",
    "OSI Approved :: BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "OSI Approved :: MIT License": "MIT",
}


def installed() -> dict[str, Distribution]:
    """Return, by name, all packages that an installation of the project with its extras needs on this
    machine.
    """
    found: dict[str, Distribution] = {}
    options = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS for line in options[extra])]:
        for each in _with_needed(Requirement(line), found):
            found[_normalized(each.metadata["Name"])] = each
    return found


def _with_needed(wanted: Requirement, found: dict[str, Distribution]) -> Iterator[Distribution]:
    if _normalized(wanted.name) in found:
        return
    try:
        package = distribution(wanted.name)
    except PackageNotFoundError:
        return  # CI installs all extras, but a laptop may lack some.
    yield package
    for line in package.requires or ():
        needed = Requirement(line)
        if not needed.marker or any(needed.marker.evaluate({"extra": name}) for name in ("", *wanted.extras)):
            yield from _with_needed(needed, found)


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(package: Distribution) -> str:
    """Return the SPDX name of the licence that a package states."""
    about = package.metadata
    stated = [line.removeprefix("License :: ") for line in about.get_all("Classifier") or ()]
    stated = [line for line in stated if line.startswith("OSI Approved")]
    said = about.get("License-Expression") or about.get("License") or next(iter(stated), None)
    said = said or _title_of_licence(package)
    return SPELLED.get(said, said)


def _title_of_licence(package: Distribution) -> str:
    """Return the first line of the file LICENSE of a package whose metadata names no licence."""
    [file] = [path for path in package.files or () if path.name == "LICENSE"]
    return file.read_text().partition("\n")[0].strip()


def test_the_licence_of_every_package_is_listed() -> None:
    packages = installed()
    assert len(packages) > 30
    stated = {name: licence(package) for name, package in packages.items()}
    wrong = {name: said for name, said in stated.items() if LICENCES.get(name) != said}
    assert not wrong, f"docs/licences.tsv must say: {wrong}"


def test_every_licence_allows_what_the_project_does_with_the_package() -> None:
    licences = {*LICENCES.values(), *(each.licence for each in bundled_packages())}
    named = {name for said in licences for name in re.split(r" AND | OR |[()]", said) if name}
    assert named <= PERMISSIVE | WEAK_COPYLEFT
