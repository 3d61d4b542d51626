"""The site that the attacks use, with a long history, pictures, an account and a role for the public."""

import io
import json
import random
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from PIL import Image

from bench.history import make_history
from bench.sites import WORDS, Sizes, article_path, git, make_site
from bench.writing import writing_token
from server.auth.accounts import Accounts
from server.auth.users import Users

PICTURES = 12
PASSWORD = "a password of some length"
NAME = "reader"
CONFLICTING = "conflicts"  # a branch that conflicts with main
_SETTINGS = """name: Attacked
api: {populate_with_pagination: allow}
media: {transform: {per_minute: 1000000}}
roles:
  public:
    article: [find, findOne]
    author: [find, findOne]
    category: [find, findOne]
    tag: [find, findOne]
    upload: [find, findOne]
    history: [read]
    branch: [find]
    auth: [callback, register, forgotPassword]
urls: {article: "https://example.org/articles/{slug}"}
"""


@dataclass(frozen=True)
class AttackSite:
    """A site to attack, with its commits (oldest first) and a full-access token."""

    root: Path
    sizes: Sizes
    commits: list[str]
    token: str


def make_attack_site(root: Path, articles: int, commits: int) -> AttackSite:
    """Create the site. The first and the last commits contain different pictures."""
    sizes = make_site(root, articles)
    (root / "site.yaml").write_text(_SETTINGS)
    _replace_pictures(root, "first")
    ids = make_history(root, articles, commits)
    _replace_pictures(root, "last")
    _make_conflicts(root, ids[len(ids) // 2], articles)
    Users(Accounts(root)).create(NAME, f"{NAME}@example.org", PASSWORD, role="authenticated", confirmed=True)
    return AttackSite(root, sizes, ids, writing_token(root))


def picture(width: int, height: int, seed: int = 0) -> bytes:
    noise = random.Random(seed).randbytes(64 * 64 * 3)
    file = io.BytesIO()
    Image.frombytes("RGB", (64, 64), noise).resize((width, height)).save(file, "JPEG")
    return file.getvalue()


def _replace_pictures(root: Path, which: str) -> None:
    folder = root / "content/uploads"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(PICTURES):
        data = picture(1600, 1200, number + PICTURES * (which == "last"))
        (folder / f"picture-{number}.jpg").write_bytes(data)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", f"{which} pictures", when=1_790_000_000)


def _make_conflicts(root: Path, origin: str, articles: int) -> None:
    """Create a branch that conflicts with main in the titles of articles."""
    head = f"commit refs/heads/{CONFLICTING}\ncommitter A <a@example.org> 1790000000 +0000\n"
    parts = [f"{head}data 1\nc\nfrom {origin}\n".encode()]
    for path in map(article_path, range(min(articles, 500))):
        text = git(root, "show", f"{origin}:{path}")
        data = re.sub("^title: .*$", "title: Of the branch", text, flags=re.MULTILINE).encode()
        parts.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data))
    git(root, "fast-import", "--quiet", given=b"".join(parts))


def worst_text(kind: str) -> str:
    """Return words that are expensive to search for."""
    if kind == "mistyped":
        return " ".join(f"{word}zx" for word in WORDS[:60])[:490]
    if kind == "phrases":
        return " ".join(f'"{a} {b} {a}"' for a, b in pairwise(WORDS))[:490]
    return " ".join(f"{word[:1]}*" for word in WORDS)[:490]


def as_json(data: object) -> bytes:
    return json.dumps(data).encode()
