"""`python -m tests.vendor.studio FOLDER`: bundles the studio's page into a folder, for `make dist`."""

import subprocess
import sys
from pathlib import Path

from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.servers import ROOT

FOLDER = ROOT / "vendor"


def bundle(target: Path) -> str | None:
    """Bundle the page into a folder, in place of what is there; return why that can't be done here."""
    if (reason := missing_node((20, 0)) or install(FOLDER)) is None:
        subprocess.run(["node", "studio.mjs", target.absolute()], cwd=FOLDER, check=True)
    return reason


def main() -> int:
    """Bundle the page; without npm, the package has its plain modules, but in CI that is a failure."""
    reason = bundle(Path(sys.argv[1]))
    return 0 if reason is None else skipped("bundling the studio", reason)


if __name__ == "__main__":
    sys.exit(main())
