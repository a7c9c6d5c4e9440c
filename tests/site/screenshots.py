"""Pictures of every page, wide and narrow, light and dark, for people to look at.

``python tests/site/screenshots.py FOLDER [--site _build/html]`` writes ``03-selection-390-dark-1.png`` and so on:
a long page becomes several pictures, numbered from the top.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import FloatRect
from sitecheck import LOOK, SCHEMES, WIDTHS, find_browser, launch, open_page, pages_of, serve

SLICE = 1600


def main() -> None:
    parser = argparse.ArgumentParser(description="Write pictures of every page of the built site.")
    parser.add_argument("folder", type=Path, help="where to put the pictures")
    parser.add_argument("--site", type=Path, default=Path("_build/html"), help="default: %(default)s")
    arguments = parser.parse_args()
    if not (executable := find_browser()):
        parser.error("no Chromium or Chrome is installed")
    if not (pages := pages_of(arguments.site)):
        parser.error(f"{arguments.site} has no pages: build the site first (make book)")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with launch(executable) as browser, serve(arguments.site) as origin:
        for width in WIDTHS:
            with open_page(browser, origin, width, []) as page:
                for path in pages:
                    page.goto(f"{origin}/{path}")
                    for scheme in SCHEMES:
                        page.emulate_media(color_scheme=scheme)
                        page.evaluate(LOOK, {"claims": [], "scheme": scheme})  # waits until all is set
                        height = page.evaluate("document.documentElement.scrollHeight")
                        for number, top in enumerate(range(0, height, SLICE), 1):
                            name = f"{Path(path).stem}-{width}-{scheme}-{number}.png"
                            clip: FloatRect = {"x": 0, "y": top, "width": width, "height": min(SLICE, height - top)}
                            page.screenshot(path=arguments.folder / name, full_page=True, clip=clip)
    print(f"{len(list(arguments.folder.glob('*.png')))} pictures in {arguments.folder}")


if __name__ == "__main__":
    main()
