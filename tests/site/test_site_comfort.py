"""Reading comfort, as a browser sees it: the way through the book, copying, previews of links, numbers, folded code,
figures in the dark, paper. Each check is a function that names faults; it finds none in the book, and does find each
kind in a small page that has it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page, TimeoutError
from pypdf import PdfReader
from sitecheck import AXE, open_page, serve

import tools.pdf

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
STATIC = ROOT / "book" / "_static"
BOOK = [entry.address for entry in tools.pdf.entries(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))]

built = pytest.mark.usefixtures("site")
pytestmark = pytest.mark.browser

HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,"><title>Page</title>'
NARROW = '<meta name="viewport" content="width=device-width">'


def write(folder: Path, pages: dict[str, str]) -> Path:
    """A small site of these pages, with the book's own style and scripts."""
    package = find_spec("sphinx-mathjax-offline")
    assert package and package.origin
    (folder / "_static").mkdir()
    (folder / "_static" / "mathjax").symlink_to(Path(package.origin).parent / "static" / "mathjax")
    for name in ("preview.js", "preview.css", "print.js", "print.css"):
        (folder / "_static" / name).write_text((STATIC / name).read_text(encoding="utf-8"), encoding="utf-8")
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


# ─── the way through the book, and its numbers ───────────────────────────────────────────────────

READ = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (node) => node.textContent.replace(/\\s+/g, " ").trim();
  return {
    statements: all("div.proof[id]:not(.proof-proof)").filter((box) => box.querySelector(".caption-number"))
      .map((box) => [box.id, text(box.querySelector(".caption-number"))]),
    equations: all("div.math[id^='equation-']")
      .map((box) => [box.id, box.querySelector(".eqno")?.firstChild?.textContent ?? ""]),
    back: all("a.left-prev").map((link) => link.href),
    links: all("article a.reference.internal[href*='#']").map((link) => [link.href, text(link)]),
  };
}"""


@dataclass
class Walk:
    """What somebody sees who reads on until there is no next page."""

    pages: list[str] = field(default_factory=list)
    statements: dict[str, str] = field(default_factory=dict)
    equations: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    back: list[str] = field(default_factory=list)


def walk(browser: Browser, folder: Path, start: str, width: int = 1280, pages: int = 99) -> Walk:
    """Clicks through the book; without scripts and pictures, since they take time and no part in this."""
    found, address = Walk(), start
    with serve(folder) as origin:
        page = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 900}).new_page()
        page.route("**/_images/**", lambda route: route.abort())
        page.goto(f"{origin}/{start}")
        while address not in found.pages and len(found.pages) < pages:
            found.pages.append(address)
            seen = page.evaluate(READ)
            found.statements |= {f"{address}#{anchor}": text for anchor, text in seen["statements"]}
            found.equations |= {f"{address}#{anchor}": text for anchor, text in seen["equations"]}
            found.back += [link.removeprefix(f"{origin}/").removesuffix("#") for link in seen["back"]]
            found.links += [(link.removeprefix(f"{origin}/"), text) for link, text in seen["links"]]
            onward = page.locator("a.right-next")
            if not onward.count():
                break
            with page.expect_navigation():
                onward.click(timeout=5000)
            address = page.url.removeprefix(f"{origin}/").partition("#")[0]
        page.context.close()
    return found


def wrong_numbers(seen: Walk) -> Iterator[str]:
    """Statements or equations that are not numbered upwards as 2.1, 2.2, …, references that say another number."""
    for things, form in ((seen.statements, r"[A-Z][a-z]+ (\d+)\.(\d+)"), (seen.equations, r"\((\d+)\.(\d+)\)")):
        matches = {address: re.fullmatch(form, text) for address, text in things.items()}
        yield from (f"no number: {address}" for address, match in matches.items() if not match)
        places = [(int(match[1]), int(match[2])) for match in matches.values() if match]
        yield from (f"{later} after {earlier}" for earlier, later in pairwise(places) if later <= earlier)
    for address, text in seen.links:
        target = seen.statements.get(address) or seen.equations.get(address)
        if target and re.fullmatch(r"[A-Z][a-z]+ \d[\d.]*|\([\d.]+\)", text) and text != target:
            yield f"{text} leads to {target}"


@pytest.fixture(scope="module")
def through(browser: Browser) -> Walk:
    return walk(browser, SITE, BOOK[0])


@built
def test_next_leads_through_the_whole_table_of_contents_and_previous_back(through: Walk) -> None:
    assert through.pages == BOOK
    assert through.back == BOOK[:-2]  # the last page, the index, is Sphinx's own and has no link back


@built
def test_next_can_be_tapped_on_a_phone(browser: Browser) -> None:
    assert walk(browser, SITE, BOOK[0], width=390, pages=3).pages == BOOK[:3]


@built
def test_statements_and_equations_are_numbered_and_cited_by_their_numbers(through: Walk) -> None:
    assert not list(wrong_numbers(through))
    assert len(through.statements) >= 60
    cited = [address for address, text in through.links if text == through.statements.get(address)]
    assert len(cited) > 100
    assert len(through.equations) > 50
    assert not through.equations.keys() - {address for address, _ in through.links}


STATEMENT = '<div class="proof theorem" id="{id}"><p><span class="caption-number">{number} </span></p></div>'
EQUATION = '<div class="math" id="equation-{id}"><span class="eqno">{number}<a class="headerlink">#</a></span></div>'
CITED = '<a class="reference internal" href="{page}#{id}">{number}</a>'


def numbered(tmp_path: Path, second: str = "", order: str = "abc") -> Path:
    """Three pages, each but the last leading to the next in this order, with a statement each and an equation."""
    bodies = {
        "a": STATEMENT.format(id="one", number="Theorem 1.1") + EQUATION.format(id="e", number="(1.1)"),
        "b": second or STATEMENT.format(id="two", number="Lemma 2.1"),
        "c": CITED.format(page="a.html", id="one", number="Theorem 1.1")
        + CITED.format(page="a.html", id="equation-e", number="(1.1)"),
    }
    onward = {here: f'<a class="right-next" href="{there}.html">next</a>' for here, there in pairwise(order)}
    back = {there: f'<a class="left-prev" href="{here}.html">back</a>' for here, there in pairwise(order)}
    return write(
        tmp_path,
        {
            f"{n}.html": f"{HEAD}</head><article>{body}</article>{onward.get(n, '')}{back.get(n, '')}"
            for n, body in bodies.items()
        },
    )


def test_sound_numbers_and_order_pass(browser: Browser, tmp_path: Path) -> None:
    seen = walk(browser, numbered(tmp_path), "a.html")
    assert seen.pages == ["a.html", "b.html", "c.html"] and seen.back == ["a.html", "b.html"]
    assert not list(wrong_numbers(seen))
    assert len(seen.statements) == 2 and seen.equations and len(seen.links) == 2


def test_a_page_left_out_is_noticed(browser: Browser, tmp_path: Path) -> None:
    assert walk(browser, numbered(tmp_path, order="ac"), "a.html").pages == ["a.html", "c.html"]


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        (STATEMENT.format(id="two", number="Lemma"), "no number: b.html#two"),
        (STATEMENT.format(id="two", number="Lemma 1.1"), "(1, 1) after (1, 1)"),
        (EQUATION.format(id="f", number=""), "no number: b.html#equation-f"),
        (EQUATION.format(id="f", number="(2)"), "no number: b.html#equation-f"),
        (EQUATION.format(id="f", number="(1.1)"), "(1, 1) after (1, 1)"),
        (CITED.format(page="a.html", id="one", number="Theorem 1.2"), "Theorem 1.2 leads to Theorem 1.1"),
        (CITED.format(page="a.html", id="equation-e", number="(1.2)"), "(1.2) leads to (1.1)"),
    ],
)
def test_a_wrong_number_is_noticed(second: str, fault: str, browser: Browser, tmp_path: Path) -> None:
    assert list(wrong_numbers(walk(browser, numbered(tmp_path, second), "a.html"))) == [fault]


# The equations whose number lies on what is seen of the formula, or that leave the page.
COLLISIONS = """async () => {
  await window.MathJax?.startup?.promise;
  const { clientWidth } = document.documentElement;
  return [...document.querySelectorAll("div.math[id^='equation-']")].filter((box) => {
    const frame = box.querySelector("mjx-container");
    const seen = getComputedStyle(frame).overflowX === "visible" ? frame.firstElementChild : frame;
    const [number, formula] = [box.querySelector(".eqno"), seen].map((node) => node.getBoundingClientRect());
    const across = number.left < formula.right && formula.left < number.right;
    const along = number.top < formula.bottom && formula.top < number.bottom;
    return (across && along) || Math.max(number.right, formula.right) > clientWidth;
  }).map((box) => box.id);
}"""


@built
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["06-theorem", "08-query-gradient"])
def test_numbers_stand_beside_their_equations(name: str, width: int, browser: Browser) -> None:
    with serve(SITE) as origin, open_page(browser, origin, width, []) as page:
        page.goto(f"{origin}/book/{name}.html")
        assert page.locator("div.math > .eqno").count() > 2
        assert page.evaluate(COLLISIONS) == []


@pytest.mark.parametrize(
    ("style", "faults"),
    [
        ("div { display: flex; flex-direction: row-reverse } mjx-container { flex: auto; overflow: auto }", []),
        ("div { display: flex; flex-direction: row-reverse } mjx-container { width: 9em }", ["equation-e"]),
        ("mjx-container { display: block; margin-top: -1em }", ["equation-e"]),
        ("mjx-container { display: block }", ["equation-e"]),
    ],
)
def test_a_number_on_its_equation_is_noticed(style: str, faults: list[str], browser: Browser, tmp_path: Path) -> None:
    formula = '<mjx-container><mjx-math style="display: inline-block; width: 900px">wide</mjx-math></mjx-container>'
    body = f'<div class="math" id="equation-e"><span class="eqno">(1.1)</span>{formula}</div>'
    write(tmp_path, {"page.html": f"{HEAD}{NARROW}<style>{style}</style></head><body>{body}</body></html>"})
    with serve(tmp_path) as origin, open_page(browser, origin, 390, []) as page:
        page.goto(f"{origin}/page.html")
        assert page.evaluate(COLLISIONS) == faults


# ─── previews ────────────────────────────────────────────────────────────────────────────────────

AWAY = 500  # milliseconds, well over the delays of preview.js
# axe looks at every element of a page to judge one: what stands elsewhere is emptied
REVIEW = """async () => {
  for (const node of document.querySelectorAll("article :is(mjx-container, pre)"))
    if (!node.closest(".preview")) node.replaceChildren();
  const runOnly = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] };
  const { violations } = await axe.run(".preview", { runOnly, resultTypes: ["violations"], preload: false });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
}"""


def appears(panel: Locator, within: float) -> bool:
    """Whether the panel comes into sight."""
    try:
        panel.wait_for(timeout=within)
    except TimeoutError:
        return False
    return True


def preview_faults(page: Page, link: Locator, words: str, away: float = AWAY) -> Iterator[str]:
    """What is wrong with the preview of a link, one word a fault; WCAG 1.4.13 is among it."""
    panel = page.locator(".preview")
    link.scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    link.hover()
    if not appears(panel, within=20 * away):
        yield "hover"
        return
    if words not in panel.inner_text():
        yield "content"
    if panel.locator(".math").count() != panel.locator(".math mjx-math").count():
        yield "typeset"
    if link.get_attribute("aria-describedby") != panel.get_attribute("id") or panel.get_attribute("role") != "tooltip":
        yield "name"
    box, view = panel.bounding_box(), page.viewport_size
    assert box and view
    if min(box["x"], box["y"]) < 0 or box["x"] + box["width"] > view["width"] or box["y"] > view["height"]:
        yield "overflow"
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=8)
    page.wait_for_timeout(away)
    if not panel.is_visible():
        yield "hoverable"
    page.mouse.move(0, 0)
    page.wait_for_timeout(away)
    if panel.is_visible():
        yield "leave"
    link.hover()
    appears(panel, within=20 * away)
    page.keyboard.press("Escape")
    page.wait_for_timeout(away)  # the pointer is still there
    if panel.is_visible():
        yield "escape"
    page.mouse.move(0, 0)
    link.focus()  # after a key it counts as reached by keyboard
    if not appears(panel, within=20 * away):
        yield "focus"
        return
    page.evaluate(AXE)
    if page.evaluate(REVIEW):
        yield "axe"


@built
@pytest.mark.parametrize(
    ("path", "link", "words", "width", "scheme"),
    [
        ("book/glossary.html", "mask-selection", "Theorem 11.3", 1280, "light"),
        ("book/glossary.html", "elimination-step", "Lemma 5.4", 390, "dark"),  # a long one
        ("book/findings.html", "term-control", "broken twin", 390, "light"),
        ("book/findings.html", "pl-convex", "convex", 1280, "dark"),  # a page without formulas of its own
        ("book/14-elsewhere.html", "equation-eq-step-error", "(6.2)", 1280, "light"),  # an equation elsewhere
        ("book/09-online-loss.html", "equation-eq-records", "(9.3)", 390, "dark"),  # a wide one, on the same page
    ],
)
def test_a_link_shows_what_it_leads_to(
    path: str, link: str, words: str, width: int, scheme: str, browser: Browser
) -> None:
    seen: list[tuple[str, str]] = []
    with serve(SITE) as origin, open_page(browser, origin, width, seen) as page:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(f"{origin}/{path}")
        place = page.locator(f"article :is(p, td) a[href$='#{link}']").first
        assert not list(preview_faults(page, place, words))
    assert not seen


@built
def test_previews_work_without_a_server(browser: Browser) -> None:
    page = browser.new_page()
    page.goto((SITE / "book" / "findings.html").as_uri())
    assert not list(preview_faults(page, page.locator("td a[href$='#pl-convex']").first, "convex"))
    page.close()


@built
def test_every_statement_and_every_term_has_a_preview(through: Walk) -> None:
    script = (SITE / "_static" / "previews.js").read_text(encoding="utf-8")
    previews = json.loads(script.partition("= ")[2])
    glossary = (SITE / "book" / "glossary.html").read_text(encoding="utf-8")
    terms = {f"book/glossary.html#{term}" for term in re.findall(r'<dt id="(term-[^"]+)"', glossary)}
    assert previews.keys() == through.statements.keys() | through.equations.keys() | terms
    for address, html in previews.items():
        assert through.statements.get(address, "") in re.sub(r"\s+", " ", html)
        assert not re.search(r'<a\b|href=| id="|headerlink', html)


PREVIEWS = {
    "there.html#claim": '<div class="proof theorem admonition"><p class="admonition-title">Theorem 1.1</p><section>'
    r'<p>For all <span class="math">\(\frac{q}{1+q}\)</span>.</p></section></div>',
}
LINK = '<p style="margin-top: 300px">See <a href="there.html#claim">Theorem 1.1</a> and <a href="#p">this page</a>.</p>'
# a fault, and what to change in the script or the style so that it is there
BROKEN = {
    "": ("preview.js", "", ""),
    "hover": ("preview.js", "approach(target, OPEN)", "undefined"),
    "content": ("previews.js", "Theorem 1.1", "Theorem"),
    "typeset": ("preview.js", "await typeset(made);", ""),
    "name": ("preview.js", 'target.setAttribute("aria-describedby", made.id);', ""),
    "overflow": ("preview.css", "max-width: min(42rem, 100vw - 24px)", "min-width: 120vw"),
    "axe": ("preview.css", "color: var(--pst-color-text-base)", "color: #ddd; background: white"),
    "hoverable": ("preview.js", "panel?.contains(", "[].includes("),
    "leave": ("preview.js", "later(hide, panel", "later(place, panel"),
    "escape": ("preview.js", 'if (event.key === "Escape") dismiss();', ""),
    "focus": ("preview.js", 'target?.matches(":focus-visible")', "false"),
}


DELAYS = "OPEN = 300, CLOSE = 300;"
SOON = 150  # milliseconds


def sample(folder: Path, fault: str) -> Path:
    """A page with a link, whose script, style or content is broken in one place."""
    style = '<link rel="stylesheet" href="_static/preview.css"><script defer src="_static/preview.js"></script>'
    head = f"{HEAD}{NARROW}{style}"
    write(folder, {"here.html": f"{head}</head><body><article>{LINK}<p id='p'>text</p></article></body></html>"})
    (folder / "there.html").write_text(f"{HEAD}</head><body><p id='claim'>there</p></body></html>", encoding="utf-8")
    previews = f"window.icalignPreviews = {json.dumps(PREVIEWS)}"
    (folder / "_static" / "previews.js").write_text(previews, encoding="utf-8")
    name, old, new = BROKEN.get(fault, ("preview.js", *TAPPED.get(fault, ("", ""))))
    text = (folder / "_static" / name).read_text(encoding="utf-8")
    assert old in text
    (folder / "_static" / name).write_text(text.replace(old, new), encoding="utf-8")
    script = (folder / "_static" / "preview.js").read_text(encoding="utf-8")
    assert DELAYS in script
    (folder / "_static" / "preview.js").write_text(script.replace(DELAYS, "OPEN = 60, CLOSE = 60;"), encoding="utf-8")
    return folder


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_preview_is_noticed(fault: str, browser: Browser, tmp_path: Path) -> None:
    with serve(sample(tmp_path, fault)) as origin, open_page(browser, origin, 390, []) as page:
        page.goto(f"{origin}/here.html")
        found = set(preview_faults(page, page.locator("a").first, "Theorem 1.1", SOON))
    assert found == {fault} - {""}


TAPPED = {"": ("", ""), "tap": ('event.pointerType === "touch" || ', "")}


def tap_faults(browser: Browser, address: str, link: str, away: float = AWAY) -> Iterator[str]:
    """What is wrong when somebody taps a link to a place on the same page."""
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 900})
    page = context.new_page()
    page.goto(address)
    place = page.locator(link).first
    # a long press, as well as what a tap does: the finger is on the link without leaving it
    place.dispatch_event("pointerover", {"pointerType": "touch", "bubbles": True})
    page.wait_for_timeout(away)
    if page.locator(".preview").count():
        yield "tap"
    place.tap()
    page.wait_for_timeout(away)
    if page.locator(".preview").count():
        yield "tap"
    if not page.evaluate("location.hash"):
        yield "follow"
    context.close()


@pytest.mark.parametrize("fault", TAPPED)
def test_a_tap_follows_the_link_and_shows_nothing(fault: str, browser: Browser, tmp_path: Path) -> None:
    folder = sample(tmp_path, fault)
    script = folder / "_static" / "previews.js"
    script.write_text(script.read_text().replace("there.html#claim", "here.html#p"), encoding="utf-8")
    with serve(folder) as origin:
        assert set(tap_faults(browser, f"{origin}/here.html", "a[href='#p']", SOON)) == {fault} - {""}


@built
def test_on_a_phone_a_tap_follows_the_link(browser: Browser) -> None:
    with serve(SITE) as origin:
        assert not list(tap_faults(browser, f"{origin}/book/glossary.html", "article dd a[href^='#term-']"))


@built
def test_without_scripts_a_link_is_a_link(browser: Browser) -> None:
    with serve(SITE) as origin:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{origin}/book/findings.html")
        page.locator("td a[href$='#pl-convex']").first.click()
        page.wait_for_url("**/book/*#pl-convex")
        page.context.close()


# ─── code ────────────────────────────────────────────────────────────────────────────────────────

LONG = 30  # lines of code that may stand open on a page: a cell has up to 20, what is shown from the package a few more


def code_faults(page: Page) -> Iterator[str]:
    """What is wrong with the code of a page: copying, folding."""
    cells = page.locator(".cell_input pre").all()
    for cell in cells:
        if cell.is_visible() and cell.inner_text().count("\n") > LONG:
            yield "long"
    if page.locator(".cell_input .highlight").count() > page.locator(".cell_input .highlight > .copybtn").count():
        yield "copy"
    elif cells and (first := page.locator(".cell_input .highlight:visible").first):
        first.hover()
        first.locator(".copybtn").click()
        code = first.locator("pre").evaluate("node => [...node.childNodes].map((n) => n.textContent).join('').trim()")
        if page.evaluate("navigator.clipboard.readText()").strip() != code:
            yield "copy"
    for folded in page.locator(".tag_hide-input").all()[:1]:
        code = folded.locator("pre").first
        if code.is_visible() or not folded.locator("summary").count():
            yield "folded"
            continue
        folded.locator("summary").focus()
        page.keyboard.press("Enter")
        if not code.is_visible():
            yield "folded"


@built
@pytest.mark.parametrize("width", [1280, 390])
def test_code_can_be_copied_and_long_code_is_folded(width: int, browser: Browser) -> None:
    with serve(SITE) as origin, open_page(browser, origin, width, []) as page:
        page.route("**/mathjax/**", lambda route: route.abort())
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(f"{origin}/book/11-mask.html")
        assert page.locator(".tag_hide-input").count() > 3
        assert not list(code_faults(page))


CELL = """<div class="cell {tag}">{open}<div class="cell_input">
<div class="highlight"><pre>{code}</pre>{button}</div></div>{close}</div>"""
COPY = '<button class="copybtn" onclick="navigator.clipboard.writeText(`{what}`)">copy</button>'
FOLD = {"tag": "tag_hide-input", "open": "<details {open}><summary>code</summary>", "close": "</details>"}
UNNAMED = {"tag": "tag_hide-input", "open": "<div hidden>", "close": "</div>"}
PLAIN = {"tag": "", "open": "", "close": "", "code": "x = 1", "button": COPY.format(what="x = 1")}
CODE = {
    "sound": (set[str](), PLAIN, PLAIN | FOLD | {"open": FOLD["open"].format(open="")}),
    "no button": ({"copy"}, PLAIN | {"button": ""}, PLAIN),
    "another text": ({"copy"}, PLAIN | {"button": COPY.format(what="y = 2")}, PLAIN),
    "long code": ({"long"}, PLAIN, PLAIN | {"code": "x = 1\n" * 40}),
    "not folded": ({"folded"}, PLAIN, PLAIN | FOLD | {"open": FOLD["open"].format(open="open")}),
    "nothing to unfold it with": ({"folded"}, PLAIN, PLAIN | UNNAMED),
}


@pytest.mark.parametrize("name", CODE)
def test_a_fault_of_the_code_is_noticed(name: str, browser: Browser, tmp_path: Path) -> None:
    faults, *cells = CODE[name]
    body = "".join(CELL.format(**cell) for cell in cells)
    (tmp_path / "page.html").write_text(f"{HEAD}</head><body>{body}</body></html>", encoding="utf-8")
    with serve(tmp_path) as origin, open_page(browser, origin, 1280, []) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(f"{origin}/page.html")
        assert set(code_faults(page)) == faults


# ─── figures in the dark ─────────────────────────────────────────────────────────────────────────

# How well the darkest or lightest point of each figure can be told from what is behind the figure where it is widest.
FAINT = """async () => {
  const faint = [];
  const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  for (const image of document.querySelectorAll("article img")) {
    await image.decode();
    const { clientWidth: width, clientHeight: height } = image;
    const brush = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
    const behind = [];
    for (let node = image; node; node = node.parentElement) behind.unshift(getComputedStyle(node).backgroundColor);
    for (const fillStyle of ["white", ...behind]) Object.assign(brush, { fillStyle }).fillRect(0, 0, width, height);
    brush.filter = getComputedStyle(image).filter;
    brush.drawImage(image, 0, 0, width, height);
    const { data } = brush.getImageData(0, 0, width, height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const key = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const colours = [...counts].sort((one, other) => other[1] - one[1]);
    const value = ([key]) => luminance([key >> 16, (key >> 8) & 255, key & 255]);
    const paper = value(colours[0]);
    const best = Math.max(...colours.map(value).map((ink) => {
      const [dark, light] = [ink, paper].sort((a, b) => a - b);
      return (light + 0.05) / (dark + 0.05);
    }));
    if (best < 7) faint.push(`${best.toFixed(1)}:1 ${image.alt}`);
  }
  return faint;
}"""


@built
@pytest.mark.parametrize("path", [page for page in BOOK if re.search(r"/\d\d-", page)])
def test_figures_are_legible_in_the_dark(path: str, browser: Browser) -> None:
    with serve(SITE) as origin, open_page(browser, origin, 1280, []) as page:
        page.route("**/mathjax/**", lambda route: route.abort())
        page.emulate_media(color_scheme="dark")
        page.goto(f"{origin}/{path}")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert page.locator("article img").count()
        assert not page.evaluate(FAINT)


FIGURE = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30">{paper}<text y="20">loss</text></svg>'


@pytest.mark.parametrize(("paper", "faults"), [('<rect width="90" height="30" fill="white"/>', 0), ("", 1)])
def test_black_on_what_is_behind_it_is_noticed(paper: str, faults: int, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "plot.svg").write_text(FIGURE.format(paper=paper), encoding="utf-8")
    body = '<body style="background: #14181e"><article><img src="plot.svg" alt="loss"></article></body></html>'
    (tmp_path / "page.html").write_text(f"{HEAD}</head>{body}", encoding="utf-8")
    with serve(tmp_path) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/page.html")
        assert len(page.evaluate(FAINT)) == faults


# ─── paper ───────────────────────────────────────────────────────────────────────────────────────

PAPER = 672  # CSS pixels between the margins of print.css on A4
# What is wrong with the page on paper; print.css and print.js have had their say.
ON_PAPER = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (node) => node.checkVisibility({ contentVisibilityAuto: true }) && node.getClientRects().length > 0;
  const faults = new Set();
  const { clientWidth: width } = document.documentElement;
  if (all("nav, button, input, .bd-footer, .prev-next-footer, .headerlink").some(shown)) faults.add("chrome");
  for (const node of all("article :not(mjx-container *), article mjx-container > mjx-math")) {
    if (!shown(node)) continue;
    const { overflowX, overflowY } = getComputedStyle(node);
    if (node.getBoundingClientRect().right > width + 1) faults.add("wide");
    const cut = (overflow, inner, outer) => !/visible|clip/.test(overflow) && inner > outer + 1;
    if (cut(overflowX, node.scrollWidth, node.clientWidth) || cut(overflowY, node.scrollHeight, node.clientHeight))
      faults.add("cut");
  }
  const folded = all("article details:not(.above-input, .claim-graph-text) > :not(summary)");
  if (folded.some((node) => !shown(node))) faults.add("folded");
  if (all(".stepper-step, .viewer-setting").some((node) => !shown(node))) faults.add("steps");
  if (all("div.proof.admonition > *").some((node) => !shown(node))) faults.add("folded");
  const light = (colour) => {
    const brush = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
    Object.assign(brush, { fillStyle: colour }).fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3).reduce((sum, part) => sum + part) / 765;
  };
  const written = all("article :is(p, td, pre span)");
  if (written.some((node) => light(getComputedStyle(node).color) > 0.65)) faults.add("dark");
  if (light(getComputedStyle(document.body).backgroundColor) < 0.95) faults.add("dark");
  for (const box of all(".evidence, figure, .stepper-step, .cell_output img"))
    if (getComputedStyle(box).breakInside !== "avoid") faults.add("break");
  for (const title of all("article :is(h1, h2, h3), .admonition-title"))
    if (getComputedStyle(title).breakAfter !== "avoid") faults.add("break");
  const plain = (link) => !/underline/.test(getComputedStyle(link).textDecorationLine);
  if (all("article p a:not(:has(.claim-badge))").some(plain)) faults.add("links");
  return [...faults].sort();
}"""


def put_on_paper(page: Page) -> list[str]:
    """The faults of the page that is open, on paper; its reader has it dark on a wide screen."""
    page.evaluate("window.MathJax?.startup?.promise")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER, "height": 950})
    return page.evaluate(ON_PAPER)


@built
@pytest.mark.parametrize("name", ["11-mask", "07-query-selection", "ledger"])
def test_on_paper_nothing_is_cut_off_or_folded(name: str, browser: Browser) -> None:
    with serve(SITE) as origin, open_page(browser, origin, 1280, []) as page:
        page.emulate_media(color_scheme="dark")
        if name == "07-query-selection":  # for its viewer; the other chapter is there for the formulas
            page.route("**/mathjax/**", lambda route: route.abort())
        page.goto(f"{origin}/book/{name}.html")
        if name == "07-query-selection":
            page.evaluate("document.querySelectorAll('.math').forEach((node) => node.remove())")
        assert not put_on_paper(page)
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


PROOF = '<div class="proof admonition"><p class="admonition-title">Lemma</p><p>text</p></div>'
ON_SCREEN = (
    '<nav class="bd-sidebar">pages</nav><article class="bd-article"><h1>One<a class="headerlink" href="#a">#</a></h1>'
    '<p>A <a href="#a">link</a></p><details class="sd-dropdown"><summary>Solution</summary><p>solved</p></details>'
    '<details class="above-input"><summary>code</summary><p>code</p></details>'
    '<figure class="stepper"><section class="stepper-step">0</section><section class="stepper-step" hidden>1</section>'
    '</figure><div class="evidence"><div class="evidence-statement"><mjx-container display="true"><mjx-math '
    f'style="display: inline-block; width: 90em">wide</mjx-math></mjx-container></div></div>{PROOF}</article>'
)
ON_SCREEN_STYLE = """html[data-theme=dark] body { background: #121212; color: #ccc }
html[data-theme=light] body { color: #222 } .stepper-step[hidden] { display: none }
.evidence-statement { overflow: auto } mjx-container { display: block }"""
STAY_DARK = (
    "const { dataset } = document.documentElement; addEventListener('beforeprint', () => dataset.theme = 'dark')"
)
# a fault, and what is added to the head of the page so that it is there
UNFIT = {
    "": "",
    "chrome": "<style>@media print { .bd-sidebar { display: block !important } }</style>",
    "wide": "<style>mjx-container { font-size: 16px !important; --letters: 1 !important }</style>",
    "cut": "<style>.evidence { overflow: hidden; height: 5px }</style>",
    "folded": "<style>.sd-dropdown::details-content { content-visibility: hidden !important }</style>",
    "steps": "<style>@media print { .stepper-step[hidden] { display: none !important } }</style>",
    "dark": f"<script>{STAY_DARK}</script>",
    "break": "<style>@media print { .evidence { break-inside: auto !important } }</style>",
    "links": "<style>@media print { a { text-decoration: none !important } }</style>",
}


@pytest.mark.parametrize("fault", UNFIT)
def test_a_page_unfit_for_paper_is_noticed(fault: str, browser: Browser, tmp_path: Path) -> None:
    style = '<link rel="stylesheet" href="_static/print.css"><script src="_static/print.js"></script>'
    head = (
        f"{HEAD.replace('<html', '<html data-theme=dark')}<style>{ON_SCREEN_STYLE}</style>{style}{UNFIT[fault]}</head>"
    )
    write(tmp_path, {"page.html": f"{head}<body>{ON_SCREEN}</body></html>"})
    with serve(tmp_path) as origin, open_page(browser, origin, 1280, []) as page:
        page.goto(f"{origin}/page.html")
        assert put_on_paper(page) == [fault][: bool(fault)]


@dataclass
class Sheet:
    """The text of a sheet, and where its links lead: to a sheet, or an address."""

    text: str
    links: list[int | str]


def read(path: Path) -> list[Sheet]:
    """The sheets of a PDF."""
    reader, sheets = PdfReader(path), list[Sheet]()
    for page in reader.pages:
        notes = [note.get_object() for note in page.get("/Annots", [])]
        targets = [note["/Dest"][0].get_object() if "/Dest" in note else None for note in notes]
        links = [
            note["/A"]["/URI"] if target is None else (reader.get_page_number(target) or 0)
            for note, target in zip(notes, targets, strict=True)
        ]
        sheets.append(Sheet(re.sub(r"\s+", " ", page.extract_text()), links))
    return sheets


@pytest.mark.parametrize("style", ["", "width: 100mm", "width: 300mm", "margin-left: 220mm"])
def test_what_sticks_out_of_the_paper_is_not_printed(style: str, browser: Browser, tmp_path: Path) -> None:
    body = f'<body style="margin: 0"><article><p style="{style}">text</p></article></body></html>'
    write(tmp_path, {"page.html": f"{HEAD}</head>{body}"})
    page = tools.pdf.open_page(browser, tmp_path, [])
    if "2" in style or "3" in style:
        with pytest.raises(tools.pdf.Failure, match=r"page\.html sticks out of the paper: text"):
            tools.pdf.print_page(page, "page.html", set())
    else:
        assert "text" in tools.pdf.print_page(page, "page.html", set()).reader.pages[0].extract_text()
    page.close()


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The PDF of two pages of the book, made as ``make pdf`` makes the whole."""
    path = tmp_path_factory.mktemp("pdf") / "book.pdf"
    command = [sys.executable, "-m", "tools.pdf", "glossary", "11-mask", "--target", str(path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def sheets(pdf: Path) -> list[Sheet]:
    return read(pdf)


@built
def test_the_pdf_has_the_whole_text(sheets: list[Sheet]) -> None:
    whole = "".join(sheet.text for sheet in sheets)
    assert "In-Context Alignment" in sheets[0].text and "Contents" in sheets[1].text
    for words in ("Theorem 11.3 (Every live round selects the next best)", "Solution", "inverse temperature"):
        assert words in whole
    assert "code cell source" not in whole


@built
def test_the_pdf_has_bookmarks_and_links_and_nothing_of_this_machine(pdf: Path, sheets: list[Sheet]) -> None:
    titles = [item.title for item in PdfReader(pdf).outline if not isinstance(item, list)]
    assert [title.partition(":")[0] for title in titles] == ["Contents", "11. Causal attention III", "Glossary"]
    glossary = next(number for number, sheet in enumerate(sheets) if sheet.text.startswith("Glossary"))
    led = {link for sheet in sheets[glossary:] for link in sheet.links if isinstance(link, int)}
    (statement,) = {number for number in led if number < glossary}
    assert "Theorem 11.3 (" in sheets[statement].text
    addresses = [link for sheet in sheets for link in sheet.links if isinstance(link, str)]
    data = pdf.read_bytes()
    for local in ("file:", "127.0.0.1", "localhost", "book.invalid"):
        assert local.encode() not in data and not [address for address in addresses if local in address]
