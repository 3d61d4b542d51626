"""A site and its service as a job or an agent's tool uses them, without HTTP."""

import json
from pathlib import Path

from server.auth.owner import OWNER
from server.auth.permissions import Actor
from server.history.past import PastStates
from server.service.document_write import Operation, Verb
from server.service.history import Histories
from server.service.opening import Mode, open_site
from server.service.read import Caller
from server.service.write import Command, Result, Writes
from tests.git import commit_all
from tests.sites import STRING, collection, documents, schema, write

FILES = {
    "site.yaml": "git: {commit: each}\n",
    **collection("note", {"title": STRING, "text": STRING}, drafts=True),
    **collection("tag", {"name": STRING, "note": STRING}),
    "content-types/home.json": schema("home", {"title": STRING}, single=True),
    **documents("notes", fog={"title": "Fog", "text": "thick"}),
}
EVERYTHING = Actor("token:full", everything=True)


def _signature(actor: Actor) -> tuple[str, str]:
    """Return an author's name and email address. As in a server, the owner has none."""
    return ("" if actor is OWNER else actor.name), ""


class Service:
    """A site with its operations for reads and writes, without HTTP."""

    def __init__(self, root: Path) -> None:
        write(root, FILES)
        commit_all(root)
        self.root, self.site = root, open_site(root, Mode.SERVER, records=False).site
        past = PastStates(self.site)
        self.writes = Writes(self.site, past, _signature)
        self.histories = Histories(self.site, past, self.writes)

    def caller(self, actor: Actor = EVERYTHING, branch: str = "") -> Caller:
        """Return a caller for an actor, on the served branch or on another branch."""
        caller = Caller(self.site.state, actor)
        return self.writes.on_branch(caller, branch) if branch else caller

    def operation(self, verb: Verb, name: str, id_: str | None = None, data: object = None) -> Operation:
        """Return an operation on a document."""
        return Operation(self.site.state.schema.types[f"api::{name}.{name}"], verb, id_, data=data)

    def write(self, *operations: Operation, caller: Caller | None = None, undo: bool = False) -> Result:
        """Run the operations of one command."""
        is_batch = len(operations) > 1
        return self.writes.write(Command(caller or self.caller(), operations, is_batch, undo=undo))

    def read(self, name: str, id_: str | None = None) -> dict[str, object]:
        """Return the published version of a document, or raise NotFoundError if there is none."""
        type_ = self.site.state.schema.types[f"api::{name}.{name}"]
        values: dict[str, object] = json.loads(self.caller().reader(type_).get({}, id_).body)["data"]
        return values
