"""Errors of the processes that resize or transform images, and of the checks before them."""


class UnresizableError(Exception):
    """No variants of the image can be made, because it is damaged or needs too much time or memory."""


class UntransformableError(Exception):
    """The transformation of an image always fails.

    The message says why, as the end of a sentence about the image. `source_digest` is the SHA-256 hash of the
    image, or "" if it is unknown.
    """

    def __init__(self, reason: str, source_digest: str = "") -> None:
        super().__init__(reason)
        self.source_digest = source_digest


class SizeLimitError(ValueError):
    """An image, or the result of a transformation, would have too many pixels, according to the file header.

    The message says which limit it exceeds, as the end of a sentence.
    """


class LostProcessError(Exception):
    """A decoder process exited or did not respond. The transformation may succeed if it is tried again."""
