"""The pauses of jobs. `server.service.opening.open_site` takes them, so that tests can shorten some."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """How often each job runs, in seconds, and how long it waits after a failure."""

    lead_s: float = 0.2  # Requests come first: starting to watch 10,000 files takes 30 ms.
    setting_s: float = 0.2  # between two looks whether the settings ask for a job
    patrol_s: float = 30.0  # between two looks at all files that no report of the system has asked for
    doubt_s: float = 2.0  # for which a report may still be on its way of what a patrol finds
    poll_s: float = 2.0  # between two looks at all files while the system can't watch: inotify may be used up
    watch_retry_s: float = 30.0  # until the system is asked again to watch
    refresh_retry_s: float = 1.0
    record_s: float = 0.1  # between two looks whether events were missed
    record_retry_s: float = 5.0
    share_limits_s: float = 0.5
    share_limits_retry_s: float = 2.0
    follow_log_s: float = 0.01
    follow_log_retry_s: float = 1.0
    commit_s: float = 0.5
    check_s: float = 0.5  # without a further change, before the problems that a change brings are looked for
    scale_s: float = 1.0
    deliver_s: float = 0.1  # between two looks for events
    deliver_lock_s: float = 0.2  # until it is tried again to be the process that delivers
    deliver_retry_s: float = 1.0  # until something is tried again that the disk or a lock has refused
    follow_remote_s: float = 1.0  # between two looks whether there is a remote to follow, and nobody follows
    push_s: float = 0.1  # between two looks whether there is something to push
    push_retry_s: float = 1.0  # longer with each failure in a row
    push_longest_s: float = 30.0
    index_s: float = 0.1  # between two looks whether the site has changed
    index_lock_s: float = 1.0
    index_idle_s: float = (
        10.0  # without work, until the writing process ends; it takes 30 MB, and starts in 0.3 s
    )
