"""Generator of the measured sites, which have the same files on every machine."""

import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.model import REFERRED, write_types

COMMITS = 20  # number of commits in every site
_WORDS = """
tide harbour lantern salt marsh ferry gauge chart keel anchor mud island fog bell lens tower rope sand
weed pilot quay buoy drift swell ebb flood neap spring causeway gull heron signal keeper log brass glass
lead line fathom knot beam arc shade window morning evening winter letter ledger number"""
WORDS = _WORDS.split()


@dataclass(frozen=True)
class Sizes:
    """The number of documents of each type, depending on the number of articles."""

    articles: int

    @property
    def authors(self) -> int:
        return max(5, self.articles // 50)

    @property
    def categories(self) -> int:
        return 12

    @property
    def tags(self) -> int:
        return max(10, self.articles // 40)


def make_site(root: Path, articles: int, *, small: bool = False) -> Sizes:
    """Create a site in git with `articles` articles of 2 kB or, if `small`, 200 bytes."""
    sizes, chance = Sizes(articles), random.Random(articles)
    write_types(root)
    grants = "".join(f"    {name}: [find, findOne]\n" for name in ("article", "author", "category", "tag"))
    api = "api: {populate_with_pagination: allow}\nsearch: {index: false}"  # see bench/search.py
    _write(root / "site.yaml", f"name: Bench {articles}\n{api}\nroles:\n  public:\n{grants}")
    (root / "content").mkdir()
    for plural, (singular, _, _) in REFERRED.items():
        for i in range(getattr(sizes, plural) if articles else 0):
            name = f"{singular}-{i:04d}"
            text = f"name: {name.title()}\nslug: {name}\nbio: {_sentence(chance, 20)}\n"
            _write(root / "content" / plural / f"{name}.yaml", text)
    git(root, "init", "--quiet", "--initial-branch=main")
    _commit(root, 0)
    batch = max(1, -(-articles // COMMITS))
    for start in range(0, articles, batch):
        for i in range(start, min(start + batch, articles)):
            text = _small_article(i, sizes, chance) if small else _article(i, sizes, chance)
            _write(root / article_path(i), text)
        _commit(root, 1 + start // batch)
    return sizes


def article_path(i: int) -> str:
    return f"content/articles/{2000 + i % 25}/article-{i:05d}.md"


def article_id(i: int) -> str:
    return f"{2000 + i % 25}--article-{i:05d}"


def _article(i: int, sizes: Sizes, chance: random.Random) -> str:
    tags = ", ".join(f"tag-{chance.randrange(sizes.tags):04d}" for _ in range(3))
    related = [article_id(chance.randrange(sizes.articles)) for _ in range(2)]
    day = f"{2000 + i % 25}-{1 + i % 12:02d}-{1 + i % 28:02d}"
    paragraphs = "\n\n".join(_paragraph(chance) for _ in range(3))
    return f"""---
title: {_sentence(chance, 5)} {i}
slug: article-{i:05d}
summary: {_sentence(chance, 16)}
publishedOn: {day}
readingMinutes: {1 + i % 20}
featured: {"true" if i % 7 == 0 else "false"}
author: author-{chance.randrange(sizes.authors):04d}
category: category-{chance.randrange(sizes.categories):04d}
tags: [{tags}]
related:
  - {related[0]}
  - {related[1]}
seo:
  metaTitle: {_sentence(chance, 4)}
  metaDescription: {_sentence(chance, 14)}
sections:
  - __component: shared.quote
    body: {_sentence(chance, 12)}
    attribution: {_sentence(chance, 2)}
  - __component: shared.callout
    title: {_sentence(chance, 3)}
    body: {_sentence(chance, 15)}
createdAt: {day}T08:00:00.{i % 1000:03d}Z
---

## {_sentence(chance, 4)}

{paragraphs}
"""


def _small_article(i: int, sizes: Sizes, chance: random.Random) -> str:
    return f"""---
title: {_sentence(chance, 5)} {i}
slug: article-{i:05d}
publishedOn: {2000 + i % 25}-{1 + i % 12:02d}-{1 + i % 28:02d}
readingMinutes: {1 + i % 20}
author: author-{chance.randrange(sizes.authors):04d}
createdAt: 2024-01-01T08:00:00.000Z
---

{_sentence(chance, 5)}
"""


def git(root: Path, *arguments: str, when: int = 1_800_000_000, given: bytes = b"") -> str:
    """Run git in a site, ignoring the user's git configuration, and return its output. `given` is its
    input.
    """
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "Bench", f"GIT_{who}_EMAIL": "bench@example.org"}
        environment[f"GIT_{who}_DATE"] = f"{when} +0000"
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(
        command, env=environment, input=given, check=True, capture_output=True
    ).stdout.decode()


def content_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "content").rglob("*") if path.is_file())


def _commit(root: Path, number: int) -> None:
    git(root, "add", "--all")
    when = 1_700_000_000 + number * 86_400
    git(root, "commit", "--quiet", "--message", f"number {number}", when=when)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words)).capitalize()


def _paragraph(chance: random.Random) -> str:
    return " ".join(_sentence(chance, 10) + "." for _ in range(6))
