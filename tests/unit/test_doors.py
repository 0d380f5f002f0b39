"""Text and file names of others have one door each: no code goes around it, read from the text of
every file.

What is printed goes through `headless/console.py` (Rich), `headless/standard_streams.py` (one line
of an error) or `headless/output.py` (JSON); on the screen through the filters of `tui/filters.py`.
What becomes a part of a file's name goes through `protocol.text.file_name`.
"""

import ast

import pytest
from test_floors import FILES, PACKAGE

PRINTERS = {
    "headless/output.py": "JSON, by plain_json",
    "headless/standard_streams.py": "the streams, and one_line on stderr",
    "headless/terminal.py": "gives the streams to the consoles",
    "worker/process/channel.py": "the worker's own stderr, which is captured",
    "worker/process/forking.py": "the worker's own stderr, which is captured",
    "worker/supervisor.py": "the worker's own output, which is captured",
    "telemetry/probe.py": "an answer on a pipe to the doctor",
}
"""Files that may name a standard stream, or print, and why."""
ASKING = {"encoding", "isatty", "fileno", "reconfigure", "flush"}
STREAMS = {"sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"}
RENAMING = {"with_stem", "with_name", "with_suffix", "joinpath"}
SAFE_NAMES = {
    "launch.label": "Launch.label goes through file_name",
    "label": "Launch.label, in run_plan.py",
    "stem": "of the path that the user gave",
    "getpid": "a number",
    "pid": "a number",
    "now": "a time",
    "number": "a number",
    "hexdigest": "hexadecimal digits",
    "urandom.hex": "hexadecimal digits",
}
"""Ends of expressions that may be a part of a file's name as they are."""


def dotted(node):
    """`a.b.c` of a chain of attributes, else its last name, else nothing."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return (
        node.id
        if isinstance(node, ast.Name)
        else dotted(node.func)
        if isinstance(node, ast.Call)
        else ""
    )


def prints(tree):
    """Where text is printed, or a standard stream is taken for more than to ask it something."""
    nodes = list(ast.walk(tree))
    asked = {
        id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr in ASKING
    }
    for node in nodes:
        if isinstance(node, ast.Call):
            to_number = dotted(node.func) == "os.write" and isinstance(node.args[0], ast.Constant)
            if to_number or dotted(node.func).rpartition(".")[2] in (
                "print_exc",
                "Console",
                "showwarning",
            ):
                yield f"{node.lineno}: {dotted(node.func)}"
            elif dotted(node.func) == "print":
                yield f"{node.lineno}: print"
        elif id(node) not in asked and dotted(node) in STREAMS:
            yield f"{node.lineno}: {dotted(node)}"


def made_names(tree):
    """Expressions that become a part of a file's name without going through the door."""
    for node in ast.walk(tree):
        for part in names_in(node):
            yield from (
                f"{node.lineno}: {ast.unparse(value)}"
                for value in values_of(part)
                if not is_safe(value)
            )


def names_in(node):
    """What a node makes the name of a file of."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in RENAMING
    ):
        return node.args
    if isinstance(node, ast.Call) and dotted(node.func) in ("Path", "PurePath", "os.path.join"):
        return [part for part in node.args if is_text(part)]
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and (is_text(node.right) or is_text(node.left))
    ):
        return [node.right]
    return []


def is_text(node):
    """Whether text is put together here, or a part of a path is text: what else is divided is a
    number.
    """
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def values_of(part):
    """What is put together to a text, without the constants."""
    if isinstance(part, ast.JoinedStr):
        return [value.value for value in part.values if isinstance(value, ast.FormattedValue)]
    if isinstance(part, ast.BinOp):
        return [*values_of(part.left), *values_of(part.right)]
    return [] if isinstance(part, ast.Constant) else [part]


def is_safe(value):
    if isinstance(value, ast.Subscript):
        return is_safe(value.value)
    name = dotted(value)
    return name.endswith("file_name") or any(
        name == safe or name.endswith(f".{safe}") for safe in SAFE_NAMES
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_is_printed_and_no_file_is_named_around_the_doors(path):
    tree = ast.parse(path.read_text())
    if str(path.relative_to(PACKAGE)) not in PRINTERS:
        assert list(prints(tree)) == []
    assert list(made_names(tree)) == []


def test_every_exception_is_needed():
    used = [name for name in PRINTERS if list(prints(ast.parse((PACKAGE / name).read_text())))]
    assert used == list(PRINTERS)


@pytest.mark.parametrize(
    "code",
    [
        "print(report.title)",
        "sys.stdout.write(title)",
        "sys.stdout.buffer.write(data)",
        "print(title, file=sys.stderr)",
        "write = sys.stderr.write",
        "console = Console(file=file)",
        "os.write(1, data)",
    ],
)
def test_a_print_around_the_door_is_seen(code):
    assert list(prints(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "path.with_stem(f'{path.stem}-{name}')",
        "path.with_name(name + '.json')",
        "folder / f'{scenario.name}.jsonl'",
        "folder / (name + '.jsonl')",
        "user_state_path('gpulab') / 'runs' / name",
        "Path(f'{folder}/{name}.json')",
    ],
)
def test_a_file_named_around_the_door_is_seen(code):
    assert list(made_names(ast.parse(code)))


def test_asking_a_stream_and_constant_names_are_no_fault():
    assert not list(prints(ast.parse("sys.stdout.encoding, sys.stderr.isatty()")))
    assert not list(
        made_names(
            ast.parse("path.with_suffix('.new'); folder / 'runs'; folder / f'{file_name(x)}.json'")
        )
    )
