"""Scenario files, from tables of what differs between them.

A table is Python in sections, and each section makes a file. `# === NAME` begins one, with what the
file says of itself. Left out is what every file has: the imports of torch and gpulab,
`scenario = Scenario("gauntlet")` and the decorators of variants, which are the functions of `lab`
alone. The first variant is the baseline. A function of something else, whose name has no `_` before
it, is the step of a variant, of what the first function without arguments gives: its inputs.

Below `# --- twins` stand the variants of a second file. It has all else in common with the first,
but for names that are defined anew.
"""

import ast
from dataclasses import dataclass
from itertools import takewhile

BEGINNING = '''"""{about}"""

import torch

from gpulab import Scenario, Work

'''
SCENARIO = 'scenario = Scenario("gauntlet")\n'
STEP = """{step}


_{name} = {name}


@scenario.variant
def {name}(lab):
    {arguments} = {make}()
    return Work(lambda: _{name}({arguments}), inputs=({arguments}))
"""


@dataclass(frozen=True)
class File:
    name: str
    about: str
    sources: dict
    """Of statements, by the name that each defines."""
    docstrings: dict
    """Of variants, by name: the baseline is the first."""
    make: str | None
    """The function that gives the inputs of steps."""

    @property
    def variants(self):
        """Without the baseline."""
        return list(self.docstrings)[1:]

    def text(self, only=None):
        """Of the whole file, or of its baseline and one variant."""
        left_out = set(self.variants) - {only} if only else ()
        sources = [source for name, source in self.sources.items() if name not in left_out]
        if "scenario" not in self.sources:
            sources.insert(0, SCENARIO)
        return BEGINNING.format(about=self.about) + "\n".join(sources)


def files_of(folder):
    """The files of a folder of tables, and those of their twins."""
    files, twins = [], []
    for table in sorted(folder.glob("*.py")):
        for section in table.read_text().split("# === ")[1:]:
            name, _, text = section.partition("\n")
            text, _, twin_text = text.partition("# --- twins\n")
            file = _file(name, text)
            if file.docstrings:
                files.append(file)
            if twin_text:
                twins.append(_file(name, twin_text, file))
    return files, twins


def _file(name, text, like=None):
    """`like`: a file whose baseline, and what is no variant, this one shares."""
    lines = text.splitlines(keepends=True)
    about = list(takewhile(lambda line: line.startswith("#"), lines))
    sources, docstrings = {}, {}
    nodes = ast.parse(text).body
    make = next(filter(_takes_nothing, nodes), None)
    make = make.name if make else like and like.make
    if like:
        sources = {name: text for name, text in like.sources.items() if name not in like.variants}
        docstrings = {name: text for name, text in like.docstrings.items() if name in sources}
    start = len(about)
    for node in nodes:
        source = "".join(lines[start : node.end_lineno]).lstrip("\n")
        start = node.end_lineno
        defined = _name(node)
        sources.pop(defined, None)
        if isinstance(node, ast.FunctionDef):
            arguments = ast.unparse(node.args)
            if arguments == "lab":
                if not node.decorator_list:
                    source = f"@scenario.variant\n{source}"
            elif arguments and not defined.startswith("_"):
                source = STEP.format(
                    name=defined, make=make, arguments=arguments, step=source.strip()
                )
                arguments = "lab"
            if arguments == "lab":
                docstrings[defined] = ast.get_docstring(node) or ""
        sources[defined] = source
    about = "".join(line.lstrip("# ") for line in about).strip()
    return File(name, about, sources, docstrings, make)


def _takes_nothing(node):
    is_plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
    return is_plain and not ast.unparse(node.args)


def _name(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    return ast.unparse(node)
