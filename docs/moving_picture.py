"""Records docs/images/explorer.gif from the explorer's page of a run in headless Chromium.

    .venv/bin/python docs/moving_picture.py RUN

It clicks through cells, moves the preference and lets gaits play, as a user would.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import moqd  # noqa: E402
from tests.explorer.browser import Browser  # noqa: E402

SIZE = (1280, 780)
WIDTH = 960
FRAME = 0.11
"""Seconds."""
COLOURS = 256
EXACT = 96
"""Of the colours: the most frequent ones, as they are; the others cover the rest."""


def scenes(browser: Browser, weights: int) -> Iterator[int]:
    """How many frames to record after each step."""
    yield 8
    for share in (0.6, 0.7, 0.8, 0.9, 0.97):
        rest = (1 - share) / (weights - 1)
        browser.run(f"window.moqd.setPreference([{share}, {', '.join([str(rest)] * (weights - 1))}])")
        yield 1
    browser.run("window.moqd.selectSolution(window.moqd.recommended())")
    yield 12
    cells = browser.run(
        "[...document.querySelectorAll('[data-cell]')].map((cell) => Number(cell.dataset.cell))"
        ".filter((cell, i, all) => i % Math.ceil(all.length / 7) === 3)"
    )
    for cell in cells[:4]:
        browser.run(f"window.moqd.selectCell({cell})")
        rows = browser.run("window.moqd.shownFront()")
        if rows:
            browser.run(f"window.moqd.selectSolution({rows[0]})")
            yield 9
    for share in (0.8, 0.6, 0.4, 0.2, 0.1):
        rest = (1 - share) / (weights - 1)
        browser.run(f"window.moqd.setPreference([{share}, {', '.join([str(rest)] * (weights - 1))}])")
        yield 1
    browser.run("window.moqd.selectSolution(window.moqd.recommended())")
    yield 12


def palette_of(pictures: list[Image.Image]) -> Image.Image:
    """One for all pictures, so that what does not move takes no room."""
    middle = pictures[len(pictures) // 2]
    frequent = sorted(middle.getcolors(middle.width * middle.height), reverse=True)[:EXACT]
    covering = middle.quantize(COLOURS - EXACT, Image.Quantize.MAXCOVERAGE).getpalette()
    made = Image.new("P", (1, 1))
    made.putpalette([value for _, colour in frequent for value in colour] + covering[: 3 * (COLOURS - EXACT)])
    return made


def main(folder: str) -> None:
    run = moqd.load_run(folder)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        page = moqd.explore(run, place / "explorer.html")
        pictures = []
        with Browser(place / "chromium", *SIZE) as browser:
            browser.open(page.as_uri())
            browser.wait("window.moqd && window.moqd.ready")
            for frames in scenes(browser, run.task.num_objectives):
                for _ in range(frames):
                    browser.screenshot(place / "frame.png")
                    picture = Image.open(place / "frame.png").convert("RGB")
                    pictures.append(picture.resize((WIDTH, WIDTH * SIZE[1] // SIZE[0]), Image.Resampling.LANCZOS))
    palette = palette_of(pictures)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    target = ROOT / "docs" / "images" / "explorer.gif"
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=int(1000 * FRAME), loop=0, optimize=True)
    print(f"{target.relative_to(ROOT)}: {len(frames)} frames, {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
