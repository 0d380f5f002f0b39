"""Scenario files of strangers: odd literals in every keyword, real files with odd bytes, marks
again and again.
"""

import io
import os
from functools import cache
from pathlib import Path

import msgspec

from fuzz.mutations import mutated_bytes
from gpulab.catalog.catalog import function_entry, read_again, read_file
from gpulab.catalog.view import lesson, listing
from gpulab.core.jobs import RunRequest
from gpulab.headless.output import PlainConsole
from gpulab.options import Options, UsageError
from gpulab.session.launch import Launch, plan, sweep_launches

words = str.split
RAN = "GPULAB_FUZZED_FILE_RAN"
SENTINEL = f'__import__("os").environ[{RAN!r}] = "1"\n'
"""The first line of most files: nothing of one may run."""
NUMBERS = (
    *words("0 -1 2**62 9**64 2**63-1 2**63 -(2**63) 1e999 -1e999 1e308*10 5e-324 1e400-1e400"),
    *words("1j 3//0 1/0 0**-1 (-8)**0.5 2**-64 (((9**64)**64)**64)**64 9**9**9 4*MiB GiB**9"),
    *words("-KiB --1 True -True 0.1 1_000"),
    *("0x" + "f" * 5000, "9" * 4300, "9" * 4301, "+".join("1" * 30), "+".join("1" * 1000)),
)
TEXTS = (
    *words(r"'' 'a' '../../x' '\ud800' '\x1b[2Jb' 'a\nfaster\t99x' '\0' 'A=B' '\u202egnp'"),
    *words(r"'lambda' 'lab' 'cuda' 'device' 'step' 'cold' 'é' f'{1}' b'a' 'a'*9 -'a' 'a'.b"),
    *words(r"'n' 'm' '\d' '$\frac{$'"),
    *(f"'{'x' * 101}'", f"'{'x' * 5000}'", "'\ufeff'", "'a' 'b'"),
)
OTHERS = (
    *words("None ... n f() [*a] {**a} {} () [] {{}:1} {1:2} *a (a:=1)"),
    *("lambda: 1", "[i for i in a]", "not 1", "1 if 1 else 2", "-" * 100 + "1"),
    *("(" * 60 + ")" * 60, "[" * 30 + "1" + "]" * 30),
)
TABLES = {
    "params": "{'n': %s, 'm': 'x', 'k': 0.5}",
    "cpu": "{'n': %s}",
    "smoke": "{'n': %s}",
    "sweep": "{'n': (1, %s)}",
    "env": "{'A': %s}",
    "needs": "('jax',)",
    "claim": "%s",
}
FLAGS = ("ladder", "exclusive", "increasing_memory")
KEYWORDS = (*TABLES, *FLAGS, *words("params params roof per clock cache topic speed **more"))
OF_VARIANTS = ("needs", "against", "claim", "unchecked", "fast")
NAMES = ("a", "b", "control", "_c", "é", "x" * 101, "x" * 9000, "ﬁ", "lab", "print")
MARKS = (
    *words('( [ { f( 1, 1+ - a; # " [1], {1: a. a[ lambda: f"{a}" {a} é ﬁ 0x 9 _ *'),
    *("'" * 3, "\n", "\\\n", "\t", "\f", "\r", "\0", "\ufeff", "\u2028", "not ", "else ", "async "),
    *("yield ", "1if 1else ", "@a\n", "if 1:\n", "import a\n", "a:int=1\n", "def f(): ...\n"),
)
LENGTHS = (100, 5000, 60_000, 150_000, 400_000, 1_100_000)
HEADS = (
    *("", "[", "(", "x = ", "f'''", '"""', "a", "scenario = Scenario('t', params={'n': "),
    SENTINEL,
)
TAILS = ("", "]", ")", "1", '"""', "'''", "\n(", "1 1", "})")
FIRST_LINES = (
    "",
    "",
    "",
    "# coding: utf-8\n",
    "# coding: utf-7\n",
    "\ufeff",
    "#!x\n# vim: coding=latin-1\n",
)
LESSONS = (
    "A lesson.\n\n    code\n",
    "",
    r"\ud800\x1b[31m",
    "\n" * 300 + "a",
    "x" * 70_000,
    "\t" * 9,
)


def case(random):
    """The bytes of one."""
    kind = random.randrange(8)
    if kind < 4:
        data = _text(random).encode()
        return mutated_bytes(random, data) if random.randrange(4) == 0 else data
    if kind < 7:
        return SENTINEL.encode() + mutated_bytes(random, random.choice(_real_files()))
    marks = "".join(random.choice(MARKS) for _ in range(random.choice((1, 1, 2, 3))))
    return (
        random.choice(HEADS) + marks * (random.choice(LENGTHS) // len(marks)) + random.choice(TAILS)
    ).encode()


def check(data, folder):
    """Read the file, list it, show its lesson, plan its runs. UsageError is the only refusal, and
    nothing is run.
    """
    path = folder / "fuzzed.py"
    path.write_bytes(data)
    entry = read_file(path)
    assert entry.error or entry.source.encode() == data
    entries = [
        entry,
        read_again(entry),
        *(function_entry(entry, name) for name in list(entry.text.functions)[:3]),
    ]
    rows = [entry.row for entry in entries]
    msgspec.json.encode(rows)
    console = PlainConsole(io.StringIO())
    console.print(listing(rows), *(lesson(row) for row in rows))
    assert "\x1b" not in console.file.getvalue()
    settings = Options(device="cpu"), Options(device="cpu", smoke=True)
    for entry in entries:
        launch = Launch(entry, (entry.function,) if entry.function else ())
        for choice in settings:
            check_plan(launch, choice)
        for sweep in ("", "n", "n=1,2"):
            for point in (unless_refused(sweep_launches, launch, sweep, settings[0]) or [])[:5]:
                check_plan(point, settings[0])
    assert RAN not in os.environ


def check_plan(launch, settings):
    """The worker can decode what is sent to it, or there is a report, and the run file has a
    name.
    """
    request = unless_refused(plan, launch, settings)
    data = msgspec.json.encode(request)
    if isinstance(request, RunRequest):
        assert msgspec.json.decode(data, type=RunRequest) == request
    assert len(os.fsencode(f"{launch.label}.jsonl")) < 255
    assert "/" not in launch.label


def unless_refused(function, *arguments):
    """What it returns; None where it refuses its arguments in some lines."""
    message = ""
    try:
        return function(*arguments)
    except UsageError as error:
        message = str(error)
    assert len(message) < 20_000
    return None


@cache
def _real_files():
    root = Path(__file__).parents[2]
    paths = [
        *sorted((root / "scenarios").glob("*.py")),
        root / "tests" / "catalog" / "example.py",
    ]
    return [path.read_bytes() for path in paths]


def _text(random):
    """The text of a file with a Scenario, most of it right."""
    odd = random.choice((0.02, 0.1, 0.5))
    arguments = [
        "'mine'",
        *(_keyword(random, name, odd) for name in random.sample(KEYWORDS, random.randrange(6))),
    ]
    lesson_text = random.choice(LESSONS)
    lines = [
        random.choice(FIRST_LINES),
        SENTINEL if random.random() > odd else "",
        f'"""{lesson_text}"""\n',
        "from gpulab import GiB, KiB, MiB, Scenario, Work\n",
        f"scenario = Scenario({', '.join(arguments)})\n" * (2 if random.random() < odd / 5 else 1),
    ]
    for number in range(random.choice((1, 2, 2, 3, 3, 260))):
        name = random.choice(NAMES) if random.random() < odd else f"v{number}"
        head = f"{_decorator(random, odd)}def {name}({_arguments(random, odd)}):\n"
        lines.append(f"{head}    '''{lesson_text[:200]}'''\n")
    if random.random() < odd:
        random.shuffle(lines)
    return "".join(lines)


def _decorator(random, odd):
    if random.random() > odd:
        return "@scenario.variant\n"
    values = (
        f"{name}={value(random, 3)}" for name in random.sample(OF_VARIANTS, random.randrange(4))
    )
    decorator = f"@scenario.variant({', '.join(values)})\n"
    return random.choice((decorator, decorator, "", "@property\n", "if 1:\n @scenario.variant\n "))


def _arguments(random, odd):
    if random.random() > odd:
        return "lab"
    names = (
        random.choice((*NAMES, "n", "m", "*", "/", "*k", "**k", "n=1"))
        for _ in range(random.randrange(5))
    )
    return ", ".join(("lab", *names))


def _keyword(random, keyword, odd):
    if random.random() < odd:
        return keyword if keyword == "**more" else f"{keyword}={value(random, 3)}"
    usual = TABLES.get(keyword, "True" if keyword in FLAGS else "'a'")
    return f"{keyword}={usual.replace('%s', random.choice(('1', '64', '2*4', value(random, 1))))}"


def value(random, depth):
    """A literal, or what looks like one."""
    kind = random.randrange(8)
    if depth == 0 or kind < 5:
        return random.choice((NUMBERS, NUMBERS, TEXTS, TEXTS, OTHERS)[min(kind, 4)])
    inner = [value(random, depth - 1) for _ in range(random.randrange(4))]
    inner *= random.choice((1, 1, 100)) if sum(map(len, inner)) < 1000 else 1
    if kind == 5:
        return "{" + ", ".join(f"{random.choice(TEXTS)}: {text}" for text in inner) + "}"
    if kind == 6:
        return "(" + "".join(f"{text}," for text in inner) + ")"
    return random.choice((" + ", " * ", " ** ", " - ", " // ")).join(["1", *inner])
