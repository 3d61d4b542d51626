"""Limits on the pixels of images.

- MAX_MEASURED_PIXELS: a file that declares more is not treated as an image.
- MAX_DECODED_PIXELS: a larger image gets no variants at upload.
- The setting `media.transform.max_pixels`: a larger image is not transformed by URL.
"""

MAX_MEASURED_PIXELS = 100_000_000  # Even a tiny file can declare a huge number.
MAX_DECODED_PIXELS = 64_000_000  # in all frames of a GIF together
MAX_RESULT_BYTES = 64_000_000  # size of a transformed image
