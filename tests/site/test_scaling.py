"""The background job that creates formats of pictures, and its retries."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType

from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.site.background.jobs import ResizeImages
from server.site.site import Site
from tests.api.test_upload import picture
from tests.sites import collection, load, write
from tests.waiting import until


def test_pictures_that_cant_be_scaled_now_are_looked_at_with_pauses(tmp_path: Path) -> None:
    write(tmp_path, {**collection("note", {}), "content/uploads/a.png": picture(), ".bifolio/formats": ""})
    site, looks = load(tmp_path, {}), list[float]()

    def hook(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Site.incomplete_images.__code__:
            looks.append(time.monotonic())

    threading.setprofile(hook)
    runner = Runner([ResizeImages(site, replace(Timing(), scale_s=0.1))])
    try:
        runner.start()
        threading.setprofile(None)  # type: ignore[arg-type]  # The stub lacks None.
        until(lambda: len(looks) > 8)  # each attempt adds two entries
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
        runner.stop()
    assert looks[8] - looks[0] > 4 * 0.09
