"""A site that is cloned from a bare remote, and a second clone that pushes to this remote."""

from dataclasses import dataclass
from pathlib import Path

from server.history.past import PastStates
from server.history.remote.apply_commits import AppliedCommit, Takeover
from tests.git import TIME, git
from tests.sites import STRING, Api, collection, make, relation, write

FILES: dict[str, str | bytes] = {
    "site.yaml": "search: {index: false}\n",
    ".gitignore": ".bifolio/\n*.tmp\n",
    "README.md": "First\n\nSecond\n\nThird\n",
    **collection("tag", {"name": STRING}),
    **collection(
        "note",
        {
            "title": {"type": "string", "required": True},
            "summary": STRING,
            "number": {"type": "integer"},
            "body": {"type": "richtext"},
            "tags": relation("manyToMany", "tag"),
        },
    ),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/notes/one.md": "---\n# A comment\ntitle: One\nsummary: Short\ntags: [sea]\n---\nThe quay.\n",
    "content/notes/two.md": "---\ntitle: Two\nnumber: 1\n---\nText.\n",
}


@dataclass
class Places:
    """A site (`api`), its remote (`remote`, a bare repository), and a second clone (`other`)."""

    api: Api
    remote: Path
    other: Path
    inside: str = ""

    @property
    def root(self) -> Path:
        return self.api.root

    @property
    def head(self) -> str:
        return git(self.root, "rev-parse", "HEAD").strip()

    @property
    def branch(self) -> str:
        """The latest commit of the site's local branch `main`."""
        return git(self.root, "rev-parse", "refs/heads/main").strip()

    @property
    def status(self) -> str:
        return git(self.root, "status", "--porcelain")

    def note(self, name: str = "one") -> dict[str, object]:
        answer = self.api.get(f"/api/notes/{name}")
        return answer.data if answer.status == 200 else {}

    def push(
        self,
        files: dict[str, str | bytes | None],
        message: str = "change",
        *,
        force: bool = False,
        at: str = TIME,
    ) -> str:
        """Commit files in the second clone, push them to the remote, and return the commit's id."""
        change(self.other / self.inside, files)
        git(self.other, "add", "-A")
        git(self.other, "commit", "-qm", message, "--allow-empty", at=at)
        git(self.other, "push", "-q", *(["--force"] if force else []), "origin", "main")
        return git(self.other, "rev-parse", "HEAD").strip()

    def edit(self, files: dict[str, str | bytes | None]) -> None:
        """Change files in the site's folder, without committing them."""
        change(self.root, files)

    def commit(self, message: str = "here") -> str:
        """Commit the changed files in the site's folder with git, and return the commit's id."""
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", message)
        self.api.site.refresh()
        return self.head

    def take(self) -> AppliedCommit:
        """Fetch the remote's commits and integrate them into the site."""
        git(self.root, "fetch", "-q", "origin", "+refs/heads/main:refs/remotes/origin/main")
        theirs = git(self.root, "rev-parse", "refs/remotes/origin/main").strip()
        return Takeover(PastStates(self.api.site)).take_over(theirs)

    def takes(self, commit: str) -> bool:
        """Integrate the remote's commits. Return whether the site is then at exactly the given commit."""
        return self.take().commit == commit

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


def change(root: Path, files: dict[str, str | bytes | None]) -> None:
    for path, text in files.items():
        if text is None:
            (root / path).unlink()
        else:
            write(root, {path: text})


def settle(places: Places) -> None:
    """Do what a new process does after the previous process was killed: rescan and make pending commits."""
    places.api.site.refresh()
    places.api.site.committer.commit_due()
    places.api.site.refresh()


def set_up(
    folder: Path, inside: str = "", kind: str = "sha1", files: dict[str, str | bytes] = FILES
) -> Places:
    remote, other, here = folder / "remote.git", folder / "other", folder / "here"
    git(folder, "init", "-q", "--bare", "-b", "main", f"--object-format={kind}", str(remote))
    git(folder, "init", "-q", "-b", "main", f"--object-format={kind}", str(other))
    write(other / inside, dict(files))
    if inside:
        write(other, {"README": "Outside\n"})
    git(other, "add", "-A")
    git(other, "commit", "-qm", "begin")
    git(other, "remote", "add", "origin", str(remote))
    git(other, "push", "-q", "origin", "main")
    git(folder, "clone", "-q", str(remote), str(here))
    return Places(make(here / inside, {}), remote, other, inside)
