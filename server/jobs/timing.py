"""The pauses of jobs. `server.service.opening.open_site` takes them, so that tests can shorten some."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """How often each job runs, in seconds, and how long it waits after a failure."""

    lead_s: float = 0.2  # Requests come first: starting to watch 10,000 files takes 30 ms.
    setting_s: float = 0.2  # between two looks whether the settings ask for a job
    follow_log_s: float = 0.01
    follow_log_retry_s: float = 1.0
    commit_s: float = 0.5
    check_s: float = 0.5  # without a further change, before the problems that a change brings are looked for
    scale_s: float = 1.0
