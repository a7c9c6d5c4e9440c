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
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
  const contrast = ["color-contrast"];
  const runOnly = part === "contrast" ? { type: "rule", values: contrast } : { type: "tag", values: tags };
  const rules = part === "all but contrast" ? { [contrast]: { enabled: false } } : {};
  const { violations } = await axe.run({ runOnly, rules, resultTypes: ["violations"], preload: false });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`.replace(/\s+/g, " ").slice(0, 160)));
}
