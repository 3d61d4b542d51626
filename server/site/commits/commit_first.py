"""Commits that are created before a write changes files, so that the git remote can reject them."""

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
    """Create a commit of `files` on top of `base` without moving a branch. Raises CommitError.

    `documents` are listed at the end of the commit message. If git ignores all of the files, no commit is
    created.
    """
    person, now = Person.parse(site.state.settings.git.committer), int(time.time())
    author = person.author(authorship.name, authorship.email)
    full_message = with_trailers(message, authorship.actor, documents)
    return site.committer.prepare(NewCommit(files, full_message, author, now, person, now, base))
