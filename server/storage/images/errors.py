"""Errors of resizing or transforming images."""


class UnresizableError(Exception):
    """No variants of the image can be made, because it is damaged or needs too much time or memory."""


class UntransformableError(Exception):
    """The transformation of an image always fails.

    The message is the reason without a subject, such as "can't be encoded as avif". `source_digest` is the
    SHA-256 hash of the image, or "" if it is unknown.
    """

    def __init__(self, reason: str, source_digest: str = "") -> None:
        super().__init__(reason)
        self.source_digest = source_digest


class SizeLimitError(ValueError):
    """An image or its transformation would have too many pixels, or the part to cut out is outside the image.

    The message says which limit is exceeded, such as "it has more than 100,000 pixels".
    """


class LostProcessError(Exception):
    """A decoder process exited or did not respond. The transformation may succeed if it is tried again."""
