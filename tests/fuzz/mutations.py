"""Odd values, and ways to put them into what was well formed: JSON by its structure, anything by
its bytes.
"""

import json
from copy import deepcopy

NAMES = (
    *("", "x" * 99, "x" * 5000, "../../x", "a\nfaster 99x", "\x1b[2J\x1b]0;t\x07"),
    *("\u202egnp.x", "\u200b", "é", "$\\frac{$"),
)
ODD = (
    *(0, 1, -1, 2, 1e-300, 1e300, -1e300, 5e-324, 0.1),
    *(10**12, 2**31, 2**53, 2**63 - 1, 2**63, 10**30, 10**400, -(2**63)),
    *NAMES,
    *(None, True, False, [], {}, [[]], [None], {"": 0}, [0] * 1000, ["a"] * 300, {"code": "x"}),
)
LINES = (
    *(b"", b"{}", b"[]", b"null", b"0", b'"', b"\xff\xfe", b"\x00" * 100),
    *(b"{" * 10_000, b"[" * 100_000, b'{"type":"Samples"}'),
)


def mutated_json(random, line):
    """The line with one to three of its values, keys or items changed; unchanged where it is no
    JSON.
    """
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return mutated_bytes(random, line)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        _change(random, document)
    return json.dumps(document).encode()


def mutated_bytes(random, data):
    """The bytes with some flipped, cut out, doubled, or put in."""
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(data) + 1)
        span = random.choice((1, 1, 4, 64, 4096))
        match random.randrange(5):
            case 0:
                data[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del data[at : at + span]
            case 2:
                data[at:at] = data[at : at + span]
            case 3:
                data[at:at] = random.choice(LINES)
            case _:
                data[at:at] = bytes(random.randrange(256) for _ in range(min(span, 64)))
    return bytes(data)


def mutated_lines(random, lines):
    """The lines with some changed, dropped, doubled, moved, or of others' making."""
    lines = list(lines)
    for _ in range(random.choice((1, 1, 2, 4))):
        if not lines:
            break
        at = random.randrange(len(lines))
        match random.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines.insert(random.randrange(len(lines)), lines[at])
            case 2:
                lines.insert(random.randrange(len(lines)), lines.pop(at))
            case 3:
                lines[at] = mutated_bytes(random, lines[at])
            case 4:
                lines.insert(at, random.choice(LINES))
            case _:
                lines[at] = mutated_json(random, lines[at])
    return lines


def _change(random, document):
    """Change one place, at any depth."""
    places = list(_places(document))
    if not places:
        return
    holder, key = random.choice(places)
    match random.randrange(8):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 0:
            holder.pop(key)
        case 1 if isinstance(holder, dict):
            holder[random.choice(NAMES)] = holder.pop(key)
        case 1:
            holder.insert(key, deepcopy(random.choice(ODD)))
        case 2 if isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
            factor = random.choice((-1, 0, 1e-9, 1e9, 1e20))
            holder[key] = holder[key] * factor if abs(holder[key]) < 1e200 else factor
        case _:
            holder[key] = deepcopy(random.choice(ODD))


def _places(document):
    if not isinstance(document, (dict, list)):
        return
    for key, value in list(document.items() if isinstance(document, dict) else enumerate(document)):
        yield document, key
        yield from _places(value)
