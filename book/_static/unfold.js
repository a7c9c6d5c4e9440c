// A long formula in a box of evidence is folded, and typeset when a reader unfolds it, or when the page is printed.
(() => {
  const waiting = ".evidence-long > .mathjax_ignore";
  const typeset = (formulas) => {
    for (const formula of formulas) formula.classList.replace("mathjax_ignore", "math");
    if (formulas.length) MathJax.typeset(formulas);
  };
  window.unfoldFormulas = () => typeset([...document.querySelectorAll(waiting)]);
  for (const fold of document.querySelectorAll(".evidence-long"))
    fold.addEventListener("toggle", async () => {
      await MathJax.startup.promise;
      typeset([...fold.querySelectorAll(":scope > .mathjax_ignore")]);
    });
})();
