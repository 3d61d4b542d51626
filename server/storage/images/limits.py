"""Limits on pixels: MAX_MEASURED_PIXELS for files to count as images, MAX_DECODED_PIXELS for variants."""

MAX_MEASURED_PIXELS = 100_000_000  # Even a tiny file can declare a huge number.
MAX_DECODED_PIXELS = 64_000_000  # in all frames of a GIF together
MAX_RESULT_BYTES = 64_000_000  # size of a transformed image
