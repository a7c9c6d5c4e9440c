"""Write tests/evidence.json: how much evidence each part of each stated claim has, as of the last review.

A cell that is deleted leaves no trace in a re-run; the test that compares with this file notices.
"""

import json
from collections import Counter
from pathlib import Path

from icalign.ledger import read

PINNED = Path("tests/evidence.json")


def evidence() -> dict[str, dict[str, dict[str, int]]]:
    """Claim → part → kind of record → number; parts by hand have none."""
    return {
        entry.claim.id: {
            part.name: dict(sorted(Counter(r.kind for r in entry.records if r.part == part.name).items()))
            for part in entry.claim.parts
        }
        for entry in read()
        if entry.statements
    }


if __name__ == "__main__":
    PINNED.write_text(json.dumps(evidence(), indent=1) + "\n", encoding="utf-8")
