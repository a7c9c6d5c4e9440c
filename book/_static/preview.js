// Beside a link to a statement, a numbered equation or a term of the glossary, a panel with what it leads to: when the
// pointer rests on the link, and when the keyboard reaches it. It stays while the pointer is on it, Escape closes it,
// and a tap just follows the link. What it shows is in previews.js, which the build writes; nothing else is loaded.
(() => {
  const OPEN = 300, CLOSE = 300;  // milliseconds that the pointer has to stay, or may be away
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  const scripts = {};
  let link, panel, timer;  // the link that is shown or about to be, the panel that shows it, what comes next
  let done;  // the link whose panel was closed while the pointer is still there

  const load = (path) => scripts[path] ??= new Promise((end) => {
    const script = document.createElement("script");
    Object.assign(script, { src: new URL(path, root).href, onload: end, onerror: end });
    document.head.append(script);
  });

  const later = (act, delay) => {
    clearTimeout(timer);
    timer = setTimeout(act, delay);
  };

  const linkOf = (target) => {
    const found = target instanceof Element && target.closest("a[href*='#']:not(.headerlink)");
    return found instanceof HTMLAnchorElement && found.closest("article, #search-results") ? found : null;
  };

  const contentOf = async (target) => {
    await load("_static/previews.js");
    const address = decodeURI(target.href.replace(root.href, ""));
    return window.icalignPreviews?.[address];
  };

  const typeset = async (node) => {
    if (!node.querySelector(".math")) return;
    if (!window.MathJax) {  // a page without formulas of its own
      window.MathJax = { options: { processHtmlClass: "math" }, startup: { typeset: false } };
      await load("_static/mathjax/tex-chtml.js");
    }
    await window.MathJax.startup?.promise;
    await window.MathJax.typesetPromise?.([node]);
    for (const formula of node.querySelectorAll("[tabindex]"))  // the keyboard stops only where there is more to see
      if (formula.scrollWidth <= formula.clientWidth || !formula.closest("div.math")) formula.removeAttribute("tabindex");
  };

  const place = () => {
    const margin = 12, gap = 3;
    const at = link.getBoundingClientRect();
    const below = innerHeight - at.bottom - gap - margin, above = at.top - gap - margin;
    panel.style.maxHeight = "none";
    const under = panel.offsetHeight <= below || below >= above;
    panel.style.maxHeight = `${Math.max(under ? below : above, 96)}px`;
    const right = document.documentElement.clientWidth - margin - panel.offsetWidth;
    panel.style.left = `${Math.max(margin, Math.min(at.left, right))}px`;
    panel.style.top = `${under ? at.bottom + gap : at.top - gap - panel.offsetHeight}px`;
    if (panel.scrollHeight > panel.clientHeight) panel.tabIndex = 0;  // then the keyboard can reach it, to scroll
  };

  const hide = () => {
    clearTimeout(timer);
    if (panel?.contains(document.activeElement)) link.focus();
    link?.removeAttribute("aria-describedby");
    window.MathJax?.typesetClear?.([panel].filter(Boolean));
    panel?.remove();
    link = panel = undefined;
  };

  const dismiss = () => {
    done = link;
    hide();
  };

  const show = async (target) => {
    const made = document.createElement("div");
    const content = await contentOf(target);
    if (!content || link !== target || target.closest(".preview")) return;
    Object.assign(made, { id: "preview", className: "preview", innerHTML: content });
    made.setAttribute("role", "tooltip");
    made.style.visibility = "hidden";
    panel = made;
    target.after(made);  // where the keyboard goes next
    await typeset(made);
    if (panel !== made) return;
    place();
    target.setAttribute("aria-describedby", made.id);
    made.style.visibility = "";
  };

  const approach = (target, delay) => {
    if (target === link) return panel && clearTimeout(timer);
    hide();
    link = target;
    later(() => show(target), delay);
  };

  const inside = (node) => node instanceof Node && (link?.contains(node) || panel?.contains(node));
  const held = () => link?.matches(":focus-visible") || panel?.contains(document.activeElement);
  const leave = (event) => {
    if (link && inside(event.target) && !inside(event.relatedTarget) && !held())
      later(hide, panel ? CLOSE : 0);
  };

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || event.buttons) return;
    if (panel?.contains(event.target)) return clearTimeout(timer);
    const target = linkOf(event.target);
    if (target === done) return;
    done = undefined;
    if (target) approach(target, OPEN);
  });
  document.addEventListener("pointerout", leave);
  document.addEventListener("focusin", (event) => {
    const target = linkOf(event.target);
    if (target?.matches(":focus-visible") && !panel?.contains(target)) approach(target, 0);
  });
  document.addEventListener("focusout", (event) => {
    if (link && inside(event.target) && !inside(event.relatedTarget)) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") dismiss();
  }, true);
  document.addEventListener("click", (event) => {
    if (link?.contains(event.target)) dismiss();
  });
  document.addEventListener("scroll", (event) => {
    if (panel && !panel.contains(event.target)) place();
  }, { capture: true, passive: true });
  addEventListener("resize", () => panel && place());
})();
