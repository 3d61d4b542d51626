"""Commits that are made before files change, so that the git remote can reject them."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from server.site.commits.message import Authorship, with_trailers
from server.site.site import Site
from server.storage.git.commit import NewCommit, Person, PreparedCommit


def create_unpublished_commit(
    site: Site,
    files: Mapping[str, bytes | Path | None],
    message: str,
    documents: Iterable[str],
    authorship: Authorship,
    base: str,
) -> PreparedCommit:
    """Commit `files` on top of the commit `base`, without moving a branch.

    No commit is made if nothing would change, for example because git ignores the files. Raises CommitError
    if a hook rejects the commit or git is busy.
    """
    person, now = Person.parse(site.state.settings.git.committer), int(time.time())
    author = person.author(authorship.name, authorship.email)
    full_message = with_trailers(message, authorship.actor, documents)
    return site.committer.prepare(NewCommit(files, full_message, author, now, person, now, base))
