"""What is sent of a frame shows what the whole frame would have shown, on a terminal of our own."""

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import get_character_cell_size

from gpulab.tui.changed_cells import ChangedCells

WIDTH, HEIGHT = 12, 4
SEQUENCE = re.compile(
    r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|\x1b\[(K)|\x1b\[(2J)|\x1b\[\?1049[hl]|(\n)|(.)"
)
STYLES = [
    "",
    "1",
    "31",
    "7",
    "4",
    "1;39;49",
    "39;44",
    "38;5;7;49",
    "7;39;49",
    "38;5;7;48;5;9",
    "48;5;9",
]
NONE = ("", "", "")
BLANK = (" ", NONE)


class Terminal:
    """Cells as (character, codes that are seen: attributes, colour, background); what is outside of
    the screen is not kept.
    """

    def __init__(self, erases_with_background=False):
        self._erases_with_background = erases_with_background
        self.cells = {
            (row, column): ("?", NONE)
            for row in range(1, HEIGHT + 1)
            for column in range(1, WIDTH + 1)
        }

    def write(self, data):
        row = column = 1
        seen = NONE
        for token in SEQUENCE.finditer(data):
            y, x, codes, erase, clear, line, character = token.groups()
            if y:
                row, column = int(y), int(x)
            elif codes is not None:
                seen = _styled(seen, codes)
            elif erase:
                assert seen == NONE or self._erases_with_background
                for place in range(column, WIDTH + 1):
                    self.cells[row, place] = (" ", ("", "", seen[2]))
            elif clear:
                self.cells = dict.fromkeys(self.cells, BLANK)
            elif line:
                row += 1
            elif character:
                self._put(row, column, character, seen)
                column += get_character_cell_size(character)

    def _put(self, row, column, character, seen):
        if character == " " and not set(seen[0]) & {"4", "7"}:
            seen = ("", "", seen[2])
        for place, cell in enumerate(
            [(character, seen)] + [("", seen)] * (get_character_cell_size(character) - 1), column
        ):
            if (row, place) in self.cells:
                self.cells[row, place] = cell


def _styled(seen, codes):
    """What is seen after the codes of one sequence."""
    attributes, colour, background = seen
    for code in re.findall(r"[34]8;5;\d+|\d+", codes) or ["0"]:
        if code == "0":
            attributes, colour, background = NONE
        elif code[0] == "3":
            colour = "" if code == "39" else code
        elif code[0] == "4" and code != "4":
            background = "" if code == "49" else code
        else:
            attributes = "".join(sorted({*attributes, code}))
    return attributes, colour, background


texts = st.text(alphabet="ab  ─█好", max_size=WIDTH)


@st.composite
def frames(draw):
    """A frame as Textual writes it: rows from some column on, of segments each with its style."""
    parts = []
    for row in draw(st.lists(st.integers(1, HEIGHT), unique=True, min_size=1)):
        column = draw(st.integers(1, WIDTH))
        parts.append(f"\x1b[{row};{column}H")
        room = WIDTH + 1 - column
        for text in draw(st.lists(texts, min_size=1, max_size=4)):
            kept = ""
            for character in text:
                if sum(map(get_character_cell_size, kept + character)) <= room:
                    kept += character
            room -= sum(map(get_character_cell_size, kept))
            style = draw(st.sampled_from(STYLES))
            parts.append(f"\x1b[{style}m{kept}\x1b[0m" if style else kept)
        parts.append("\n")
    return "".join([*parts, "\x1b[1;1H"])


@given(st.lists(frames(), max_size=8), st.integers(0, 8), st.booleans())
def test_the_screen_is_the_same_with_fewer_bytes(drawn, forgotten, erases_with_background):
    whole, lean = Terminal(), Terminal(erases_with_background)
    changed = ChangedCells(erases_with_background=erases_with_background)
    changed.resize(WIDTH, HEIGHT)
    for data in ["\x1b[?1049h", *drawn]:
        whole.write("\x1b[2J" if "1049" in data else data)
        lean.write(changed.of(data))
        assert _halves_whole(whole) == _halves_whole(lean)
    sent = changed.of(drawn[-1]) if drawn else ""
    assert sent == "", "the same again is nothing"
    if drawn and forgotten == 0:
        changed.forget()
        fresh = Terminal(erases_with_background)
        fresh.write(changed.of(drawn[-1]))
        other = Terminal()
        other.write(drawn[-1])
        assert _halves_whole(fresh) == _halves_whole(other)


def _halves_whole(terminal):
    """Without halves of wide characters, which terminals draw in their own ways."""
    cells = {}
    for (row, column), cell in terminal.cells.items():
        lead = terminal.cells.get((row, column - 1), BLANK)
        wide = get_character_cell_size(cell[0]) == 2 if cell[0] else False
        right = terminal.cells.get((row, column + 1), BLANK)
        half = (cell[0] == "" and get_character_cell_size(lead[0] or " ") != 2) or (
            wide and right[0] != ""
        )
        cells[row, column] = "half" if half else cell
    return cells


def test_blanks_to_the_end_of_a_row_are_erased():
    changed = ChangedCells()
    changed.of("\x1b[?1049h")
    changed.of("\x1b[2;1Hlong text")
    assert changed.of("\x1b[2;1Hlong     ") == "\x1b[2;5H\x1b[K\x1b[2;1H"


def test_a_background_is_erased_where_the_terminal_can_and_only_what_changes_is_said():
    row = f"\x1b[1;1H\x1b[38;5;2;48;5;9mab{' ' * (WIDTH - 2)}\x1b[0m"
    sent = {}
    for erases in (False, True):
        changed = ChangedCells(erases_with_background=erases)
        changed.resize(WIDTH, HEIGHT)
        sent[erases] = changed.of(row)
    assert sent[True].count(" ") == 0 < sent[False].count(" ")
    assert "ab\x1b[39m\x1b[K" in sent[True]


def test_what_is_no_frame_is_sent_as_it_is():
    changed = ChangedCells()
    for data in ("\x1b[?25l", "\x1b]52;c;aGk=\x07", "\x07", "\x1b[1;1H\x1b]8;;x\x1b\\link"):
        assert changed.of(data) == data


def test_of_a_frame_for_a_larger_terminal_only_what_fits_is_sent():
    """A terminal puts the rest into its last column and row, where it would stay."""
    cells = ChangedCells()
    cells.resize(WIDTH, HEIGHT)
    sent = cells.of(
        f"\x1b[1;1H{'x' * (WIDTH + 5)}\x1b[2;{WIDTH}H好\x1b[3;{WIDTH + 3}Hbeside\x1b[{HEIGHT + 1};1Hbelow"
    )
    assert re.findall(r"[^\x1b\[\d;H]", sent) == ["x"] * WIDTH
    assert cells.of(f"\x1b[1;{WIDTH}Hx") == f"\x1b[1;{WIDTH}H"
    assert "x" in cells.of(f"\x1b[2;{WIDTH}Hx")
    cells.resize(WIDTH + 5, HEIGHT)
    assert cells.of(f"\x1b[1;1H{'x' * (WIDTH + 5)}").count("x") == WIDTH + 5
