"""Known differences in which Bifolio is correct, each with the reason why."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """A cause of differences in one tree for which Bifolio is correct, and their maximum number."""

    tree: str
    cause: str
    max_count: int
    reason: str


KNOWN = (
    Known(
        "digitalgov",
        "values: text, without blanks at the end of a line",
        3,
        "YAML drops blanks at the end of a line in quotes (1.2.2, 7.3.1); js-yaml keeps them",
    ),
    Known(
        "digitalgov",
        "values: string, a value that the file does not have",
        1,
        "options.fileName says the slug of an event whose file does not",
    ),
    Known(
        "digitalgov",
        "changed: more than one hunk",
        3,
        "a list that is changed also loses entries that lead to nothing, or that it has twice",
    ),
)


def reason_of(tree: str, cause: str, count: int) -> str | None:
    """Return why a difference is correct, or None if it is not declared or occurs too often."""
    return next(
        (
            known.reason
            for known in KNOWN
            if known.tree == tree and known.cause == cause and count <= known.max_count
        ),
        None,
    )
