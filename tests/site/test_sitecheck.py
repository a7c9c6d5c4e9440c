"""The check can fail: each kind of fault, put into a small page, is found, and nothing else is."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from sitecheck import KINDS, Survey, cannot_look, pages_of, survey

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><head><title>Sample</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width">
<style>.evidence {{ border-left: 4px solid; }}</style>
<script>
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  follow(), dark.addEventListener("change", follow);
</script></head><body><article>{body}</article></body></html>"""

TITLE = '<p class="admonition-title">Lemma</p>'
BADGE = '<p class="admonition-title">Lemma <span class="claim-badge">open</span></p>'
MATHJAX = '<script defer src="_static/mathjax/tex-chtml.js"></script>'

SOUND = {
    "there": '<p id="there">the target of a link</p>',
    "mathematics": rf"{MATHJAX}<p>\(\frac{{q}}{{1+q}}\) and \[x = y\]</p>",
    "everything at once": f"""<h1 id="top">Sound</h1> <a href="#top">top</a> <a href="there.html#there">there</a>
        <code>$$</code> <img src="dot.svg" alt="a dot"> <svg role="img" aria-label="a graph"></svg>
        <div class="proof" id="claim">{BADGE}</div> <div class="proof" id="no-claim">{TITLE}</div>
        <div class="evidence proof">proof: all N</div>
        <div style="overflow-x: auto" tabindex="0"><div style="width: 2000px">a wide table that scrolls</div></div>""",
}

FAULTS = {
    "an image from elsewhere": ("outgoing", '<img src="http://elsewhere.example/dot.svg" alt="a dot">'),
    "a font from elsewhere": (
        "outgoing",
        "<style>@font-face {font-family: f; src: url(http://elsewhere.example/f)} p {font-family: f}</style><p>text",
    ),
    "a socket to elsewhere": ("outgoing", "<script>new WebSocket('ws://elsewhere.example/')</script>"),
    "a missing script": ("request", '<script src="missing.js"></script>'),
    "a console error": ("console", "<script>console.error('broken')</script>"),
    "a console warning": ("console", "<script>console.warn('odd')</script>"),
    "an exception": ("error", "<script>throw new Error('broken')</script>"),
    "a rejected promise": ("error", "<script>Promise.reject(new Error('broken'))</script>"),
    "a name declared twice": ("error", "<script>const a = 1</script><script>const a = 1</script>"),
    "one scheme for all": ("theme", "<script>dark.removeEventListener('change', follow)</script>"),
    "an error node": ("mathjax", '<mjx-merror data-mjx-error="Missing argument">x</mjx-merror>'),
    "wrong TeX": ("mathjax", rf"{MATHJAX}<p>\(\frac{{1}}\)</p>"),
    "an unknown macro": ("mathjax", rf"{MATHJAX}<p>\(\nosuchmacro + 1\)</p>"),
    "an unknown equation": ("mathjax", rf"{MATHJAX}<p>\(\ref{{nowhere}}\)</p>"),
    "inline TeX": ("unrendered", r"<p>the bound \(q/(1+q)\)</p>"),
    "displayed TeX": ("unrendered", "<p>the bound $$q/(1+q)$$</p>"),
    "dollars": ("unrendered", "<p>the bound $q/(1+q)$</p>"),
    "dollars around mathematics": ("unrendered", rf"{MATHJAX}<p>the bound $\(q\)$</p>"),
    "a role": ("unrendered", "<p>see {prf:ref}`selection-bound`</p>"),
    "a claim without status": ("badge", f'<div class="proof" id="claim">{TITLE}</div>'),
    "an empty status": ("badge", f'<div class="proof" id="claim">{BADGE.replace("open", "")}</div>'),
    "a wide block": ("overflow", '<div style="width: 2000px">wide</div>'),
    "a block cut off": ("overflow", '<div style="overflow: hidden"><p style="width: 2000px">wide</p></div>'),
    "no text for an image": ("alt", '<img src="dot.svg">'),
    "a file name for an image": ("alt", '<img src="dot.svg" alt="dot.svg">'),
    "no text for a graph": ("alt", '<svg role="img"></svg>'),
    "a plain evidence box": ("evidence", '<div class="evidence" style="border: none">proof</div>'),
    "grey on grey": ("contrast", '<div class="evidence"><p style="color: #777; background: #999">proof</p></div>'),
    "a faint line": ("contrast", '<div class="evidence"><p style="opacity: .4">proof</p></div>'),
    "a button without a name": ("axe", "<button></button>"),
    "a field without a label": ("axe", '<input type="range">'),
    "a list without items": ("axe", "<ul><p>no item</p></ul>"),
    "grey on grey in the dark": (
        "axe",
        "<style>@media (prefers-color-scheme: dark) { p { color: #555; background: #333 } }</style><p>text",
    ),
    "a faint text that looks like one cut off": (
        "axe",
        """<div style="height: 0; overflow: hidden"><p style="color: #bbb">cut off</p></div>
        <div><p style="color: #bbb">a faint text</p></div>""",
    ),
    "a faint word in code": ("axe", '<pre><span style="color: #bbb">x</span></pre>'),
    "one id twice": ("id", '<p id="twice">one</p><p id="twice">two</p>'),
    "a link to nowhere": ("link", '<a href="missing.html">missing</a>'),
    "a link to a disk": ("link", '<a href="file:///missing.html">missing</a>'),
    "a link in a graph": ("link", '<svg><a href="missing.html"><text y="20">missing</text></a></svg>'),
    "an anchor to nowhere": ("anchor", '<a href="#missing">missing</a>'),
    "an anchor on another page": ("anchor", '<a href="there.html#missing">missing</a>'),
}


def path_of(sample: str) -> str:
    return f"{sample.replace(' ', '-')}.html"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    """The survey of a site that has each sample on a page of its own."""
    site = tmp_path_factory.mktemp("site")
    bodies = {sample: body for sample, (_, body) in FAULTS.items()} | SOUND
    for sample, body in bodies.items():
        (site / path_of(sample)).write_text(PAGE.format(body=body), encoding="utf-8")
    (site / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', encoding="utf-8")
    package = find_spec("sphinx-mathjax-offline")
    assert package and package.origin
    (site / "_static").mkdir()
    (site / "_static" / "mathjax").symlink_to(Path(package.origin).parent / "static" / "mathjax")
    return survey(site, claims=["claim"])


@pytest.mark.parametrize("sample", SOUND)
def test_finds_nothing_on_a_sound_page(sample: str, seen: Survey) -> None:
    faults = [fault for fault in seen.faults if fault.page == path_of(sample)]
    assert not faults, "\n".join(map(str, faults))


def test_reads_the_page_and_the_statements(seen: Survey) -> None:
    assert "Lemma" in seen.statements["claim"]
    assert "a wide table" in seen.text[path_of("everything at once")]


@pytest.mark.parametrize("sample", FAULTS)
def test_finds(sample: str, seen: Survey) -> None:
    kind, _ = FAULTS[sample]
    faults = [fault for fault in seen.faults if fault.page == path_of(sample)]
    # a request that failed is reported on the browser's console too, and axe sees some of what faults.js sees
    twice = {"outgoing": "console", "request": "console", "alt": "axe", "contrast": "axe"}
    allowed = {kind, twice.get(kind, kind)}
    assert kind in {fault.kind for fault in faults} <= allowed, "\n".join(map(str, faults))


def test_every_kind_of_fault_has_a_sample() -> None:
    assert {kind for kind, _ in FAULTS.values()} == set(KINDS)


def test_pages_are_found_but_not_assets_or_redirects(tmp_path: Path) -> None:
    for path in ("a.html", "book/b.html", "_static/c.html"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("<p>page</p>", encoding="utf-8")
    (tmp_path / "index.html").write_text('<meta http-equiv="Refresh" content="0; url=a.html">', encoding="utf-8")
    assert pages_of(tmp_path) == ["a.html", "book/b.html"]


def test_what_cannot_be_seen_is_skipped_but_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ICALIGN_REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        cannot_look("no browser")
    monkeypatch.setenv("ICALIGN_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        cannot_look("no browser")
