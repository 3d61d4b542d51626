"""`python -m tests.vendor.studio FOLDER`: bundle the studio's page into a folder, for `make dist`."""

import subprocess
import sys
from pathlib import Path

from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.servers import ROOT

FOLDER = ROOT / "vendor"


def bundle(target: Path) -> str | None:
    """Bundle the page into a folder, and replace what is there. Return an error message if this is not
    possible.
    """
    if (reason := missing_node((20, 0)) or install(FOLDER)) is None:
        subprocess.run(["node", "studio.mjs", target.absolute()], cwd=FOLDER, check=True)
    return reason


def main() -> int:
    """Bundle the page. Return the exit status.

    Without npm, the package contains the separate modules instead. In CI, a missing npm is an error.
    """
    reason = bundle(Path(sys.argv[1]))
    return 0 if reason is None else skipped("bundling the studio", reason)


if __name__ == "__main__":
    sys.exit(main())
