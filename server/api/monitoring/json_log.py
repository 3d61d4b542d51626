"""What `quire serve --log json` writes of what there is and what changes: one JSON object a line."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from server.api.monitoring.request_log import write_line
from server.problems import Problem
from server.site.change import Change
from server.site.site import State


@dataclass(frozen=True, slots=True)
class JsonLog:
    """A server's log for programs; what a terminal leaves out as `quiet` is left out here as well."""

    quiet: bool = False

    def ready(
        self,
        state: State,
        problems: Sequence[Problem],
        seconds: float,
        url: str,
        commit: tuple[str, str, str] | None = None,
        studio: str = "",  # A log is kept, and a key to the studio is for one person at a terminal.
    ) -> None:
        """Write that the server answers, with what there is, then each problem; see `Terminal.ready`."""
        versions = sum(len(table.versions) for table in state.snapshot.tables.values())
        told = {"name": state.settings.name, "url": url, "seconds": round(seconds, 3), "versions": versions}
        if commit:
            told["commit"] = commit[0]
        write_line("info", "ready", told)
        self._problems(problems, "problem")

    def change(self, change: Change, seconds: float) -> None:
        """Write what a change read and wrote, then each problem that came or went."""
        parts = ("read", "removed", "written", "deleted")
        told = {part: list(paths) for part in parts if (paths := getattr(change, part))}
        if (told or change.reloaded) and not self.quiet:
            ms = round(seconds * 1000, 1)
            write_line("info", "change", {**told, "reloaded": change.reloaded, "ms": ms})
        self._problems(change.problems, "problem")
        if not self.quiet:
            self._problems(change.fixed, "fixed")

    def tell(self, line: str) -> None:
        """Write a remark."""
        write_line("info", "log", {"message": line})

    def warn(self, line: str) -> None:
        """Write what is wrong and does not keep the server from serving."""
        write_line("warning", "log", {"message": line})

    def _problems(self, problems: Sequence[Problem], event: str) -> None:
        for problem in problems:
            if problem.severity == "error" or not self.quiet:
                level = "info" if event == "fixed" else problem.severity
                write_line(level, event, {**asdict(problem), "severity": problem.severity})
