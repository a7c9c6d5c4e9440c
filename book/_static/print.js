// Before the page goes on paper: the light colours, formulas that are still folded, and for print.css the width of every
// displayed formula, in letters.
(() => {
  const { dataset } = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => {
    theme = dataset.theme;
    dataset.theme = "light";
    window.unfoldFormulas?.();
    const formulas = [...document.querySelectorAll("mjx-container[display='true']")];
    const widths = formulas.map((formula) =>
      formula.firstElementChild.getBoundingClientRect().width / parseFloat(getComputedStyle(formula).fontSize));
    formulas.forEach((formula, k) => formula.style.setProperty("--letters", widths[k].toFixed(1)));
  });
  addEventListener("afterprint", () => { dataset.theme = theme; });
})();
