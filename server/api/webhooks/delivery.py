"""The job that delivers the webhooks of a site, in the process that leads."""

from server.api.webhooks.body import body_of
from server.events.model import Event
from server.events.webhooks.delivery_worker import Deliverer
from server.jobs.timing import Timing
from server.site.site import Site


def make_deliverer(site: Site, timing: Timing) -> Deliverer:
    """Return the job, which renders bodies from the site as it is shown."""

    def render(event: Event, drafts: bool) -> bytes:
        if event.document_id:
            site.record()  # A change is recorded and then shown, under the lock that this takes.
        return body_of(site.state, event, drafts=drafts)

    return Deliverer(site.root, lambda: site.state.settings, render, timing)
