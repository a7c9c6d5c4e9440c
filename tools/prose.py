"""Reads a page's markdown as a reader does: which lines are prose, where a proof begins, which numbers stand in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<directive>[\w:.+-]+)\})?(?P<argument>.*)$")
OPTION = re.compile(r"^\s*:[\w-]+:(\s|$)")
# Directives whose body is no prose, and those whose argument is a file or a name.
VERBATIM = {"math", "code", "code-block", "code-cell", "bibliography", "glue:math", "toctree", "raw"}
FILES = {"figure", "image", "glue:figure", "glue:any", "include", "literalinclude"}


@dataclass
class Line:
    """A line of prose. ``opens`` names the directive whose body begins here."""

    number: int
    text: str
    opens: str | None = None


@dataclass
class Block:
    """A fenced block that has not ended: its fence, its directive, and whether its body has begun."""

    fence: str
    directive: str | None
    begun: bool = False

    def ends_at(self, line: str) -> bool:
        """Whether the line closes the block: at least as many of the same character, and nothing else."""
        return set(line.strip()) == {self.fence[0]} and len(line.strip()) >= len(self.fence)

    @property
    def verbatim(self) -> bool:
        """Whether the body is shown as it stands. A plain ``:::`` is a division, whose body is prose."""
        return self.directive in VERBATIM or (self.directive is None and self.fence[0] != ":")


def lines(markdown: str) -> Iterator[Line]:
    """The lines of prose; fences, code, displayed directives and the options of directives are left out."""
    open_blocks: list[Block] = []
    for number, text in enumerate(markdown.splitlines(), 1):
        block = open_blocks[-1] if open_blocks else Block("", None, begun=True)
        opens = None if block.begun else block.directive
        if block.fence and block.ends_at(text):
            open_blocks.pop()
            if opens:
                yield Line(number, "", opens)
        elif block.fence and (block.verbatim or (not block.begun and (not text.strip() or OPTION.match(text)))):
            continue
        elif fence := FENCE.match(text):
            block.begun = True
            open_blocks.append(Block(fence["fence"], fence["directive"]))
            argument = "" if fence["directive"] in VERBATIM | FILES else fence["argument"]
            yield Line(number, text if opens else argument, opens)
        else:
            block.begun = True
            yield Line(number, text, opens)


# Where a number is no claim of the prose: mathematics, code and roles, links, HTML …
WITHIN = r"(?:[^\n]|\n(?!\s*\n))*?"
NOT_PROSE = re.compile(
    rf"""\$\$.*?\$\$ | \\begin\{{(?P<env>\w+\*?)\}}.*?\\end\{{(?P=env)\}} | (?<!\\)\${WITHIN}(?<!\\)\$
      | (?P<ticks>`+){WITHIN}(?P=ticks) | !?\[[^\]]*\]\([^)]*\) | </?[A-Za-z!][^<>]*> | \b(?:https?://|doi:|arXiv:)\S+""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# … and references: sections and statements of the paper, versions, licences, dates.
REFERENCE = re.compile(
    r"""(?: \b(?:Theorem|Lemma|Proposition|Corollary|Corollarie|Definition|Example|Observation|Remark|Claim|Assumption
        |Algorithm|Section|Chapter|Part|Appendix|Appendice|Equation|Eq|Figure|Table|version|Python|PyTorch|torch|SymPy
        |NumPy|CC[ ]BY|arXiv)s?\.? | §+ )
        \s*\(?\d+(?:\.\d+)*\)?(?:\s*(?:,\s*and|,|–|-|and|or|to)\s*\(?\d+(?:\.\d+)+\)?)*
      | \b\d{1,2}\.\d{1,2}\.\d{4}\b""",
    re.VERBOSE | re.IGNORECASE,
)
NUMBER = re.compile(
    r"""(?<![\w.])\d+(?:\.\d+)?e[-+−]?\d+\b               # 1e-9
      | (?<![\w.])\d*\.\d+(?![\w.]*\.\d)                  # 0.37, and not a version 1.2.3
      | \b\d+[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+ | \b10\^                  # 5·10⁻¹⁰, 10^-9""",
    re.VERBOSE | re.IGNORECASE,
)


def typed_numbers(markdown: str) -> Iterator[tuple[int, str]]:
    """Line and text of every number with a decimal point or an exponent that stands in the prose itself."""
    text = [""] * len(markdown.splitlines())
    for line in lines(markdown):
        text[line.number - 1] = line.text
    page = "\n".join(text)
    for pattern in (NOT_PROSE, REFERENCE):
        page = pattern.sub(lambda match: "\n" * match[0].count("\n") or " ", page)
    for number, line_text in enumerate(page.splitlines(), 1):
        for found in NUMBER.finditer(line_text):
            yield number, found[0]
