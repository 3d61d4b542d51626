"""The versions in vendor/package.json: they must be exact, so that `make vendor` always has the same
result.
"""

import json

from tests.vendor.run import BUNDLED, FOLDER


def test_each_bundled_package_has_one_version() -> None:
    package = json.loads((FOLDER / "package.json").read_text())
    wanted = {**package["dependencies"], **package["overrides"]}
    files = json.loads((BUNDLED / "manifest.json").read_text()).values()
    bundled = {found["name"]: found["version"] for file in files for found in file["packages"]}
    assert bundled == {name: wanted.get(name) for name in bundled}
