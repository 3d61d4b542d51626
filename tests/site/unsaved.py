"""Compares the problems of unsaved texts with those that `bifolio check` finds after the texts are saved."""

import random
from dataclasses import replace
from pathlib import Path

from server.service.opening import Mode, open_site
from server.site.check.readings import ProseCache
from server.site.check.survey import Survey, survey
from server.site.check.unsaved import SavedSite, decode_lossy, problems_in_text, survey_unsaved
from server.site.site import Site
from tests.random_edits import edit

EDITED = (".md", ".mdx", ".markdown", ".json", ".yaml", ".yml", ".toml")


def saved(root: Path, *, with_fixes: bool = True) -> list[str]:
    """Return the problems that `bifolio check` finds."""
    found = survey(root, lambda: open_site(root, Mode.READ).site)
    return _shown(found, with_fixes=with_fixes)


def unsaved(site: Site, texts: dict[str, str], *, with_fixes: bool = True) -> list[str]:
    """Return the problems that the language server shows for unsaved texts."""
    return _shown(survey_unsaved(SavedSite.from_site(site).with_texts(texts)), with_fixes=with_fixes)


def _shown(found: Survey, *, with_fixes: bool) -> list[str]:
    problems = found.problems if with_fixes else [replace(problem, fix="") for problem in found.problems]
    return sorted(f"{problem} {problem.severity} {problem.rule}" for problem in problems)


def compare_edits(
    open_root: Path, saved_root: Path, seed: int, steps: int, *, with_fixes: bool = True
) -> None:
    """Edit random files of a site without saving them, and compare the problems with a copy of the site in
    which the same texts are saved.

    In large sites, the time limit for suggestions can make the fixes differ: pass `with_fixes=False`.
    """
    chance, readings = random.Random(seed), ProseCache()
    site, texts = open_site(open_root, Mode.READ).site, dict[str, str]()
    basis = SavedSite.from_site(site)
    paths = sorted(path for path in basis.entries if Path(path).suffix in EDITED)
    edited = chance.sample(paths, min(4, len(paths)))
    for _ in range(steps):
        path = chance.choice(edited)
        text = edit(chance, texts.get(path) or decode_lossy((open_root / path).read_bytes()))
        texts[path] = text
        (saved_root / path).write_bytes(text.encode())
        overlay = basis.with_texts(texts)
        shown = survey_unsaved(overlay, readings)
        found, wanted = _shown(shown, with_fixes=with_fixes), saved(saved_root, with_fixes=with_fixes)
        assert found == wanted, (path, set(found) ^ set(wanted))
        told = {(p.path, p.line, p.rule) for p in shown.problems}
        assert {(p.path, p.line, p.rule) for p in problems_in_text(overlay, path)} <= told
