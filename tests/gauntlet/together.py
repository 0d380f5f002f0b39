"""Many honest twins in one file: those with the same baseline become variants of one scenario."""

import re
from collections import defaultdict

_SUSPECT = "@scenario.variant\ndef suspect(lab):"
_IMPORT = re.compile(r"^(?:import|from) .*$", re.MULTILINE)


def together(paths):
    """(the text of a scenario, names of its variants but the baseline) for each baseline."""
    groups = defaultdict(list)
    for path in paths:
        before, variant = path.read_text().split(_SUSPECT)
        docstring_end = before.index('"""', 3) + 3
        imports, rest = set(_IMPORT.findall(before)), _IMPORT.sub("", before[docstring_end:])
        groups[re.sub(r"\s+", " ", rest)].append((path.stem, imports, rest, variant))
    for group in groups.values():
        imports = sorted(set().union(*(imports for _, imports, _, _ in group)))
        variants = [f"@scenario.variant\ndef {name}(lab):{text}" for name, _, _, text in group]
        yield "\n".join(['"""Honest."""', *imports, group[0][2], *variants]), [name for name, *_ in group]
