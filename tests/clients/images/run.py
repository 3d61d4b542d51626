"""Tests of image components from npm, for `make test-clients`, with a server of the repository's own site.

Next.js and Astro are large, so they are taken from the cache in which `tests.clients.examples` keeps them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.ci import skipped
from tests.clients.examples import NODE, build, installed, own_site
from tests.clients.npm import install, missing_node
from tests.servers import free_port, serving
from tests.signals import restore_in_children

HERE = Path(__file__).parent


def main() -> int:
    """Install the components and run the tests. Return the status of Node's test runner."""
    restore_in_children()
    if (reason := missing_node(NODE) or install(HERE, "--legacy-peer-deps")) is not None:
        return skipped("images", reason)
    with (
        installed("next") as (next_folder, no_next),
        installed("astro") as (astro_folder, no_astro),
        tempfile.TemporaryDirectory(prefix="bifolio-images-") as folder,
    ):
        if (reason := no_next or no_astro) is not None:
            return skipped("images", reason)
        own_site(Path(folder, "site"))
        astro = Path(folder, "astro")
        shutil.copytree(HERE / "astro", astro)
        shutil.copy(astro_folder / "package.json", astro)
        (astro / "node_modules").symlink_to(astro_folder / "node_modules", target_is_directory=True)
        return _test(Path(folder, "site"), next_folder, astro)


def _test(site: Path, next_folder: Path, astro: Path) -> int:
    with serving(site, free_port(), output=subprocess.DEVNULL) as url:
        build(astro, {"CMS": url})
        addresses = {"CMS": url, "NEXT_PUBLIC_CMS": url}
        folders = {"NEXT_FOLDER": str(next_folder), "ASTRO_FOLDER": str(astro)}
        command = ["node", "--test", "addresses.mjs"]
        environment = {**os.environ, **addresses, **folders}
        return subprocess.run(command, cwd=HERE, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
