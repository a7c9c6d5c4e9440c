// Runs axe-core on the page that is open: the WCAG 2.1 A and AA rules, or the part of them that is asked for ("contrast"
// or "all but contrast"); returns a line for each element that violates one. It thins the page out first, since axe
// looks at every element: a formula becomes a word in its colour, one a paragraph, and of the pieces of code and
// signatures of one class one stays. Run it last.
async (part) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  document.head.insertAdjacentHTML("beforeend", "<style>*, ::before, ::after { transition: none !important; }</style>");
  all("mjx-container").forEach((formula) => formula.replaceChildren("formula"));
  for (const formula of all("span.math"))
    if (formula.parentElement.querySelector("span.math") !== formula) formula.remove();
  const seen = new Set();
  for (const piece of all("pre span, .sig span, .sig em").reverse()) {
    if (piece.id || piece.children.length) continue;
    const behind = getComputedStyle(piece.closest("div, dt, body")).backgroundColor;
    const kind = [piece.className, piece.parentElement.className, behind].join("|");
    const text = piece.textContent.trim();
    if (seen.has(kind) || !text) piece.replaceWith(piece.textContent);
    else if (text.length < 2) piece.textContent = `${text}${text}`;  // axe judges no text of a single letter
    seen.add(text ? kind : "");
  }
  document.body.normalize();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  // Of the texts that look alike (colour, letters, and all that lies behind them) contrast is judged for one; and for all
  // the others where axe cannot judge that one, since it is covered or cut off.
  const looks = new Map([[null, ""]]);
  const behind = (node) => {
    if (!looks.has(node)) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(node);
      looks.set(node, [behind(node.parentElement), backgroundColor, backgroundImage, opacity, filter].join());
    }
    return looks.get(node);
  };
  const shown = new Map();
  for (const node of all("body *")) {
    const written = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim().length > 1);
    if ((!written && !node.matches("input, button, select, textarea")) || !node.checkVisibility()) continue;
    const { color, fontSize, fontWeight, position, textShadow } = getComputedStyle(node);
    const look = [behind(node), color, fontSize, fontWeight, position, textShadow].join();
    shown.set(look, [...(shown.get(look) ?? []), node]);
  }

  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
  const options = { resultTypes: ["violations"], preload: false };
  const contrast = { runOnly: { type: "rule", values: ["color-contrast"] }, preload: false, elementRef: true };
  const others = { ...options, runOnly: { type: "tag", values: tags }, rules: { "color-contrast": { enabled: false } } };
  const found = [];
  if (part !== "contrast") found.push(await axe.run(others));
  if (part !== "all but contrast") {
    const groups = [...shown.values()];
    found.push(await axe.run({ include: groups.map(([first]) => first) }, contrast));
    const judged = [...found.at(-1).violations, ...found.at(-1).passes].flatMap(({ nodes }) => nodes);
    const settled = new Set(judged.map(({ element }) => element));
    const others = groups.filter(([first]) => !settled.has(first)).flatMap(([, ...rest]) => rest);
    if (others.length) found.push(await axe.run({ include: others }, contrast));
  }
  return found.flatMap(({ violations }) => violations).flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html}`.replace(/\s+/g, " ").slice(0, 160)));
}
