"""Limits on the pixels of images.

A file with more than MAX_MEASURED_PIXELS does not count as an image. No variants are made of an image with
more than MAX_DECODED_PIXELS.
"""

MAX_MEASURED_PIXELS = 100_000_000  # Even a tiny file can declare a huge number.
MAX_DECODED_PIXELS = 64_000_000  # in all frames of a GIF together
MAX_RESULT_BYTES = 64_000_000  # size of a transformed image
