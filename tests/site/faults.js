// What can be seen to be wrong in the page that is open: run in the browser, returns [kind, detail] pairs and
// what the checks across pages need (links, ids, prose). `claims` are the ids of book/claims.yml. Seen `again`, in another
// scheme, it looks at colours only.
async ({ claims, scheme, again }) => {
  const faults = new Map();
  const fault = (kind, detail) => {
    const text = String(detail).replace(/\s+/g, " ").trim().slice(0, 160);
    faults.set(kind + text, [kind, text]);
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const name = (node) => node.outerHTML.slice(0, 120);

  const late = new Promise((_, reject) => setTimeout(reject, 20_000, new Error("MathJax does not come to an end")));
  await Promise.race([window.MathJax?.startup?.promise, late]);
  await document.fonts.ready;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  // the colour scheme that the reader's system asks for is the one shown
  const theme = document.documentElement.dataset.theme;
  if (theme !== scheme) fault("theme", `asked for ${scheme}, shown ${theme}`);

  // evidence boxes carry their style, and their text and the badges can be read on what lies behind them
  for (const box of all(".evidence")) {
    const { borderLeftStyle, borderLeftWidth } = getComputedStyle(box);
    if (borderLeftStyle === "none" || parseFloat(borderLeftWidth) < 2) fault("evidence", `no left border: ${box.innerText}`);
  }
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  const luminance = () => {
    const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    const [red, green, blue] = brush.getImageData(0, 0, 1, 1).data;
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  };
  const paint = (colour, opacity = 1) => {
    Object.assign(brush, { fillStyle: colour, globalAlpha: opacity }).fillRect(0, 0, 1, 1);
    return luminance();
  };
  const behind = (node) => {
    node.parentElement ? behind(node.parentElement) : paint("white");
    return paint(getComputedStyle(node).backgroundColor);
  };
  const opacity = (node) => node ? getComputedStyle(node).opacity * opacity(node.parentElement) : 1;
  for (const node of all(".evidence, .evidence *, .claim-badge, .claim-badge *, .by-hand, .ledger *, .ledger-counts *")) {
    const written = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
    if (!written || node instanceof SVGElement || node.closest("mjx-container") || !node.checkVisibility()) continue;
    const [dark, light] = [behind(node), paint(getComputedStyle(node).color, opacity(node))].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < 4.5) fault("contrast", `${contrast.toFixed(1)}:1 for ${name(node)}`);
  }

  if (again) return { faults: [...faults.values()] };

  // MathJax: errors, and macros or references it does not know (it sets those in red, without an error)
  all("mjx-merror, [data-mjx-error]").forEach((node) => fault("mathjax", node.dataset.mjxError ?? node.textContent));
  for (const item of window.MathJax?.startup?.document?.math ?? [])
    item.root?.walkTree((node) => {
      const text = node.isKind("mtext") ? node.childNodes.map((child) => child.text ?? "").join("") : "";
      const unknown = text === "???" || (text.startsWith("\\") && node.attributes.get("mathcolor") === "red");
      if (node.isKind("merror") || unknown) fault("mathjax", item.math);
    });

  // mathematics or markup that reached the reader as source
  const source = /\\[([]|\\begin\{|\$|\{[a-z:-]+\}`/;
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const meant = "script, style, noscript, pre, code, textarea, mjx-container, .evidence-long > .mathjax_ignore";
  while (words.nextNode()) {
    const { data, parentElement } = words.currentNode;
    if (source.test(data) && !parentElement.closest(meant))
      fault("unrendered", data);
  }
  if (source.test(document.title)) fault("unrendered", `title: ${document.title}`);

  // every claim wears its status
  const statements = all("div.proof[id]").filter((box) => claims.includes(box.id));
  for (const box of statements)
    if (!box.querySelector(".admonition-title .claim-badge")?.textContent.trim()) fault("badge", box.id);

  // nothing sticks out of the page; what is wider scrolls inside a frame of its own
  const width = document.documentElement.clientWidth;
  const extent = document.scrollingElement.scrollWidth;
  if (extent > width) fault("overflow", `the page is ${extent} px wide in a window of ${width} px`);
  const scrolls = (node) => node && (/auto|scroll/.test(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  const stray = all("article *").find((node) => node.getBoundingClientRect().right > width + 1
    && !node.closest("mjx-assistive-mml, .visually-hidden, .sr-only") && !scrolls(node));
  if (stray) fault("overflow", `<${stray.localName}> sticks out: ${stray.closest("p, li, td, div")?.innerText}`);

  // pictures speak to those who cannot see them; a file name says nothing
  for (const image of all("img"))
    if (!image.alt.trim() || /\.(png|svg|jpe?g)$/.test(image.alt)) fault("alt", name(image));
  for (const image of all("svg[role=img]:not([aria-hidden=true])"))
    if (!image.matches("[aria-label], [aria-labelledby]") && !image.querySelector(":scope > title")) fault("alt", name(image));

  const ids = all("[id]").map((node) => node.id);
  ids.filter((id, place) => ids.indexOf(id) !== place).forEach((id) => fault("id", `twice: ${id}`));

  const prose = (document.querySelector("article") ?? document.body).cloneNode(true);
  prose.querySelectorAll("script, style, pre").forEach((node) => node.remove());

  return {
    faults: [...faults.values()],
    ids: [...ids, ...all("a[name]").map((node) => node.name)],
    links: all("[href]").map((node) => new URL(node.getAttribute("href"), document.baseURI).href),
    statements: Object.fromEntries(statements.map((box) => [box.id, box.innerText])),
    text: prose.textContent,
  };
}
