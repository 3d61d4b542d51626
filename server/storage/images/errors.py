"""Errors of the processes that resize or transform images, and of the checks before them."""


class UnresizableError(Exception):
    """No variants of an image can be made: it is damaged, or needs too much time or memory."""


class UntransformableError(Exception):
    """A transformation fails each time. `str()` says why, as the end of a sentence about the image.

    `source_digest` is the SHA-256 hash of the image, or "" if it is unknown.
    """

    def __init__(self, reason: str, source_digest: str = "") -> None:
        super().__init__(reason)
        self.source_digest = source_digest


class SizeLimitError(ValueError):
    """An image or the result of a transformation would have too many pixels, as its dimensions already show.

    `str()` says which limit it exceeds, as the end of a sentence.
    """


class LostProcessError(Exception):
    """A process ended or did not respond, so the transformation may succeed if it is tried again."""
