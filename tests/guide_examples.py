"""The examples of the manual's page on Python: the cells of its notebooks."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "gpulab" / "guide" / "13-python.md"
_CELL = re.compile(r"```python\n(.*?)```", re.DOTALL)
_TO_FILE = re.compile(r"%%writefile (\S+)\n(.*)", re.DOTALL)


def notebooks():
    """The cells of each."""
    _, *sections = PAGE.read_text().split("\n## ")
    return [cells for section in sections if (cells := _CELL.findall(section))]


def file_of(cell):
    """(name, text) of what a cell writes to a file; None where it is code to run."""
    found = _TO_FILE.fullmatch(cell)
    return found and found.groups()


def write_as_files(folder):
    """Each notebook as a script, and the files that its cells write."""
    for number, cells in enumerate(notebooks(), 1):
        code = []
        for cell in cells:
            if (named := file_of(cell)) is not None:
                (folder / named[0]).write_text(named[1])
            else:
                code.append(cell)
        (folder / f"notebook_{number}.py").write_text("\n\n".join(code))
