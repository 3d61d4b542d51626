"""Benchmark of images by URL, compared with ipx, a server that uses sharp (`python -m bench images`)."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from statistics import mean, median

from bench import image_reads
from bench.effort import scaled, scaled_seconds
from bench.load import Requests, run
from bench.peer.install import install_ipx, node
from bench.pictures import make_photographs
from bench.serving import Serving, bifolio, fetch, free_port, running
from bench.ssim import similarity
from bench.tables import count, ratio, show, size
from server.config.transformation import Transformation
from server.storage.images.transform import DEFAULT_QUALITIES, transform

PICTURES = scaled(40, 2)
ROUNDS = scaled(3, 1)
SECONDS = scaled_seconds(3)
WIDTH, CACHED_WIDTH = 800, 640
CLIENTS = 2
POLL_INTERVAL_S = 0.2
# How many pictures each server transforms for the first time. By default, sharp needs seconds for an AVIF.
COLD = {"webp": PICTURES, "jpg": PICTURES, "avif": scaled(4, 1)}
COMPARED_FORMATS = ("webp", "jpg", "avif", "png")
SETTINGS = "media: {transform: {per_minute: 1000000, max_edge: 4000}}\n"
_SHARP_NAMES = {"jpg": "jpeg"}


def measure(folder: Path) -> None:
    """Print the latency of reads beside new images, and compare rates, CPU time and quality with ipx."""
    (folder / "reads").mkdir()
    image_reads.measure(folder / "reads")
    if node() is None:
        print("there is no Node.js with npm on this machine, so there is nothing to compare with")
        return
    packages, uploads = install_ipx(), folder / "site/content/uploads"
    pictures = make_photographs(uploads, PICTURES)
    (folder / "site/site.yaml").write_text(SETTINGS)
    (folder / "site/content-types").mkdir()
    port = free_port()
    command = ["node", str(packages / "node_modules/.bin/ipx"), "serve", "--dir", str(uploads)]
    command += ["--port", str(port), "--host", "127.0.0.1"]
    # With one worker, as ipx has one process. Both decode as many images at a time as there are cores.
    with running(command, port, {"NODE_ENV": "production"}) as ipx, bifolio(folder / "site", 1) as ours:
        _wait_for_variants(ours, pictures)
        _measure_cold(ours, ipx, pictures)
        _measure_cached(ours, ipx, pictures)
    _measure_quality(folder, packages, pictures)


def _path(picture: Path, width: int, format_: str, *, is_ours: bool) -> str:
    quality = DEFAULT_QUALITIES[format_]
    if is_ours:
        return f"/uploads/{picture.name}?w={width}&fm={format_}&q={quality}"
    return f"/w_{width},f_{_SHARP_NAMES.get(format_, format_)},q_{quality}/{picture.name}"


def _wait_for_variants(ours: Serving, pictures: Sequence[Path]) -> None:
    """Wait until the server has made the four variants of each image, which it does in the background."""
    for picture in pictures:
        while True:
            with suppress(RuntimeError):
                ours.get(f"/uploads/thumbnail_{picture.name}")
                break
            time.sleep(POLL_INTERVAL_S)


def _measure_cold(ours: Serving, ipx: Serving, pictures: Sequence[Path]) -> None:
    """Request each image once, from one server after the other, in several rounds with other widths."""
    rows = []
    for format_, amount in COLD.items():
        taken: dict[bool, list[float]] = {True: [], False: []}
        used: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(ROUNDS):
            for is_ours in (True, False) if turn % 2 else (False, True):
                paths = [_path(one, WIDTH + turn, format_, is_ours=is_ours) for one in pictures[:amount]]
                serving = ours if is_ours else ipx
                before = _processor_ms(serving.pid)
                taken[is_ours].append(_seconds(serving, paths) / len(paths))
                used[is_ours].append((_processor_ms(serving.pid) - before) / len(paths))
        own, other = median(taken[True]), median(taken[False])
        own_ms, other_ms = median(used[True]), median(used[False])
        cells = [format_, count(1 / own), count(1 / other), ratio(own / other)]
        rows.append([*cells, f"{own_ms:.0f} ms", f"{other_ms:.0f} ms", ratio(own_ms / other_ms)])
    head = ["format", "Bifolio", "ipx", "time", "Bifolio CPU", "ipx CPU", "CPU"]
    note = f"Photographs of 2400 × 1600 pixels, {WIDTH} wide, {CLIENTS} clients, every image new."
    note += " CPU: the processor time of all of a server's processes for each image."
    show("Images by URL: images a second, not cached", head, rows, note)


def _processor_ms(pid: int) -> float:
    """Return the processor time of a process and of all processes that it started, even if they ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        # After the name in parentheses: user and system time of the process, then of children that ended.
        ticks = map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15])
        below = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        own = sum(ticks) / os.sysconf("SC_CLK_TCK") * 1000
        return own + sum(_processor_ms(int(child)) for children in below for child in children)
    return 0.0


def _seconds(serving: Serving, paths: Sequence[str]) -> float:
    """Return how long it takes to fetch all paths with some clients at the same time."""

    def work(number: int) -> None:
        connection = serving.connect()
        for path in paths[number::CLIENTS]:
            fetch(connection, path)
        connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _measure_cached(ours: Serving, ipx: Serving, pictures: Sequence[Path]) -> None:
    """Request images repeatedly. ipx itself has no cache, so it is also compared with files as they are."""
    some = pictures[:4]
    requested = {
        "Bifolio, transformed": (ours, [_path(one, CACHED_WIDTH, "webp", is_ours=True) for one in some]),
        "Bifolio, original files": (ours, [f"/uploads/{one.name}?v=1" for one in some]),
        "ipx, transformed": (ipx, [_path(one, CACHED_WIDTH, "webp", is_ours=False) for one in some]),
    }
    rows = []
    for name, (serving, paths) in requested.items():
        lengths = [len(serving.get(path)) for path in paths]
        results = [run(serving, Requests(paths), SECONDS, turn) for turn in range(ROUNDS)]
        rate, latency = median(r.rate for r in results), median(r.median_ms for r in results)
        rows.append([name, size(mean(lengths)), count(rate), f"{latency:.2f} ms"])
    note = "ipx does not cache its images: the framework around it does, such as Nitro."
    show("Images by URL: the same images again", ["", "size", "a second", "median"], rows, note)


def _measure_quality(folder: Path, packages: Path, pictures: Sequence[Path]) -> None:
    """Compare what both libraries make of the same pictures with sharp's lossless result."""
    made = folder / "made"
    made.mkdir()
    references = [made / f"{one.stem}.reference.png" for one in pictures]
    _resize_with_sharp(packages, pictures, references, "png", {})
    rows = []
    for format_ in COMPARED_FORMATS:
        quality = DEFAULT_QUALITIES.get(format_)
        ours = [made / f"{one.stem}.ours.{format_}" for one in pictures]
        other = [made / f"{one.stem}.sharp.{format_}" for one in pictures]
        options: dict[str, object] = {"quality": quality} if quality else {}
        if format_ == "jpg":
            options["progressive"] = True  # as ipx does
        own_ms = [_resize(*pair, format_, quality) for pair in zip(pictures, ours, strict=True)]
        sharp_ms = _resize_with_sharp(packages, pictures, other, format_, options)
        own_ssim, sharp_ssim = (
            mean(similarity(*pair) for pair in zip(files, references, strict=True)) for files in (ours, other)
        )
        own_size, sharp_size = (mean(path.stat().st_size for path in files) for files in (ours, other))
        rows.append(
            [
                f"{format_}, quality {quality}" if quality else format_,
                *(f"{median(times):.0f} ms" for times in (own_ms, sharp_ms)),
                *(f"{value:.4f}" for value in (own_ssim, sharp_ssim)),
                *(size(value) for value in (own_size, sharp_size)),
            ]
        )
    head = ["format", "Bifolio CPU", "sharp CPU", "Bifolio SSIM", "sharp SSIM", "Bifolio size", "sharp size"]
    note = "SSIM is measured against sharp's lossless result. The processor time is that of the library only."
    show("Images: processor time, quality and size of each", head, rows, note)


def _resize(source: Path, target: Path, format_: str, quality: int | None) -> float:
    """Resize an image as Bifolio does. Return the processor time in milliseconds."""
    made = BytesIO()
    began = time.process_time()
    with source.open("rb") as file:
        transform(file, made, Transformation(WIDTH, quality=quality), format_, 40_000_000)
    taken = (time.process_time() - began) * 1000
    target.write_bytes(made.getvalue())
    return taken


def _resize_with_sharp(
    packages: Path,
    sources: Sequence[Path],
    targets: Sequence[Path],
    format_: str,
    options: dict[str, object],
) -> list[float]:
    """Resize images with sharp. Return the processor time for each in milliseconds."""
    name = _SHARP_NAMES.get(format_, format_)
    jobs = [
        {"source": str(source), "target": str(target), "width": WIDTH, "format": name, "options": options}
        for source, target in zip(sources, targets, strict=True)
    ]
    script = Path(__file__).with_name("sharp.mjs")
    done = subprocess.run(
        ["node", str(script)],
        cwd=packages,
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(value) for value in json.loads(done.stdout)]
