"""The branches of a site, each a state of all content that need not be the one that is served."""

from server.errors import ConflictError, NotFoundError, ValidationError
from server.history.past import PastStates
from server.storage.git.branches import (
    Branch,
    branches,
    delete_branch,
    is_branch_name,
    move_branch,
)
from server.storage.git.refs import branch_commit, checked_out
from server.storage.git.remote import tracked_commit


class Branches:
    """The branches of a site's repository. Everything raises ConflictError in a site without commits."""

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self.root = past.site.root

    def all(self) -> list[Branch]:
        """Every branch, by name."""
        self.past.require_commits()
        return branches(self.root)

    def served(self) -> str:
        """The branch that is served: the one that is checked out; "" where that is none."""
        return checked_out(self.root)

    def get(self, name: str) -> Branch:
        """A branch. Raises NotFoundError where there is none of the name."""
        found = next((branch for branch in self.all() if branch.name == name), None)
        if found is None:
            raise NotFoundError(f'There is no branch "{name[:100]}"')
        return found

    def commit(self, name: str) -> str:
        """The last commit of a branch, or of that of the git remote (`origin/main`) as it was last fetched.

        Raises NotFoundError.
        """
        settings = self.past.site.state.settings
        branch = settings.branch or self.served()
        is_remote = settings.remote and name == f"{settings.remote}/{branch}"
        if is_remote and not branch_commit(self.root, name):
            return tracked_commit(self.root, settings.remote, branch) or self.get(name).commit
        return self.get(name).commit

    def create(self, name: str, commit: str) -> Branch:
        """Make a branch of a commit. Raises ValidationError for its name, ConflictError where it is taken."""
        if not is_branch_name(self.root, name):
            raise ValidationError(f'"{name[:100]}" can\'t be the name of a branch')
        if branch_commit(self.root, name):
            raise ConflictError(f'There is a branch "{name[:100]}" already')
        if not move_branch(self.root, name, commit, "", "create"):
            raise ConflictError(f'The branch "{name[:100]}" can\'t be made beside those that there are')
        return self.get(name)

    def delete(self, name: str) -> None:
        """Delete a branch, merged or not. Raises NotFoundError, and ConflictError where it is checked out."""
        if self.get(name).worktree or name == self.served():
            raise ConflictError(f'The branch "{name[:100]}" is checked out; check out another one first')
        if not delete_branch(self.root, name):
            raise ConflictError(f'git does not delete the branch "{name[:100]}" now; is it being rebased?')
