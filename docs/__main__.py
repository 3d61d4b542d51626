"""`python -m docs` checks README.md and docs/*.md against the code; `--write` puts in what is true.

Tables come from the code's own tables (docs/tables.py); every command in a ```console block is run
against a copy of the repository's site, and its answer compared (docs/examples.py).
"""

import argparse
import difflib
import sys
from pathlib import Path

from docs.examples import with_answers
from docs.tables import with_tables

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Check or rewrite the pages; the status is 1 where one was not true."""
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="only these pages")
    parser.add_argument("--write", action="store_true", help="put in what is true")
    options = parser.parse_args()
    wrong = 0
    for page in options.pages or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        true = with_answers(ROOT, with_tables(text))
        if true == text:
            continue
        wrong += 1
        if options.write:
            page.write_text(true, encoding="utf-8")
            print(f"{page.name}: rewritten")
        else:
            lines = (
                text.splitlines(),
                true.splitlines(),
                f"{page.name}, as it is",
                f"{page.name}, as is true",
            )
            print(*difflib.unified_diff(*lines, lineterm=""), sep="\n")
    return 1 if wrong and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
