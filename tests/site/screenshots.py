"""Pictures of every page, wide and narrow, light and dark, for people to look at.

``python tests/site/screenshots.py FOLDER [PAGE …] [--site _build/html]`` writes ``03-selection-390-dark-1.png`` and so
on: a long page becomes several pictures, numbered from the top.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Page
from sitecheck import LOOK, SCHEMES, WIDTHS, Scheme, find_browser, launch, open_page, pages_of, serve

SLICE = 1600
# Scrolling through the page loads what waits until it is in sight; then its height has to stay for half a second.
SETTLED = """async () => {
  const { scrollingElement: page, fonts } = document;
  for (let top = 0; top < page.scrollHeight; top += innerHeight) {
    scrollTo({ top, behavior: "instant" });
    await new Promise(requestAnimationFrame);
  }
  scrollTo({ top: 0, behavior: "instant" });
  await fonts.ready;
  let height, same = 0;
  for (let tries = 0; same < 5 && tries < 100; tries++) {
    same = page.scrollHeight === height && scrollY === 0 ? same + 1 : 0;
    height = page.scrollHeight;
    await new Promise((done) => setTimeout(done, 100));
  }
  if (same < 5) throw new Error("the page does not come to rest");
  return height;
}"""


def pictures(page: Page, width: int, scheme: Scheme, stem: Path) -> None:
    """The open page in one scheme, from top to bottom."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate(LOOK, {"claims": [], "scheme": scheme})  # waits until the formulas are set
    height = page.evaluate(SETTLED)
    for number, top in enumerate(range(0, height, SLICE), 1):
        clip = {"x": 0, "y": top, "width": width, "height": min(SLICE, height - top)}
        path = stem.with_name(f"{stem.name}-{width}-{scheme}-{number}.png")
        page.screenshot(path=path, full_page=True, animations="disabled", clip=clip)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write pictures of pages of the built site.")
    parser.add_argument("folder", type=Path, help="where to put the pictures")
    parser.add_argument("pages", nargs="*", help="part of a page's path, such as ledger (default: every page)")
    parser.add_argument("--site", type=Path, default=Path("_build/html"), help="default: %(default)s")
    arguments = parser.parse_args()
    if not (executable := find_browser()):
        parser.error("no Chromium or Chrome is installed")
    wanted = arguments.pages or [""]
    if not (pages := [path for path in pages_of(arguments.site) if any(part in path for part in wanted)]):
        parser.error(f"{arguments.site} has no such page (make book builds the site)")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with launch(executable) as browser, serve(arguments.site) as origin:
        for path in pages:
            for width in WIDTHS:
                with open_page(browser, origin, width, []) as page:
                    page.goto(f"{origin}/{path}")
                    for scheme in SCHEMES:
                        pictures(page, width, scheme, arguments.folder / Path(path).stem)
            print(path, flush=True)


if __name__ == "__main__":
    main()
