"""What a user, or a script of one, gives as --set and --sweep: odd text for parameters of every
type.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.scenario_files import NUMBERS, OTHERS, TEXTS, check_plan, unless_refused, value
from gpulab.catalog.catalog import read_file
from gpulab.headless.arguments import options_of
from gpulab.session.launch import Launch, sweep_launches

words = str.split
SOURCE = """from gpulab import Scenario
scenario = Scenario("t", params={"n": 4, "ratio": 0.5, "text": "x", "flag": False}, sweep={"n": (1, 2)})
@scenario.variant
def a(lab): ...
"""
NAMES = (*words("n n ratio text flag m ../../x é"), "", "\udcff", "n" * 9000, "a\nb", "\x1b[2J")
RAW = (
    *words(
        'nan inf -inf 1e999 1_0 0b1 1.0 1e300 9.3e18 TRUE yes = n=1 # 1;2 \' """ \\ ../../x a/b'
    ),
    *("", " ", "\0", "\udcff", "\u0663", "1\n2", "a\u2028b", "1if 1else 0", "é" * 300),
    *("1" * 100_000, "1," * 5000, "(" * 3000, "-" * 3000 + "1", "[" * 99 + "]" * 99),
    *("+".join("1" * 2000), "x" * 4096, "x" * 4097, "__import__('os').abort()"),
)
SETTINGS = {
    "time_s": (1.0, 0.0, -1.0, 1e300, float("nan"), float("inf"), 604800.0),
    "timeout_s": (5.0, 1e300, float("nan")),
    "seed": (-1, 2**63 - 1, 2**63, -(10**30), 10**5000),
    "device": ("tpu", "cuda:" + "9" * 9000, "\udcff", ""),
    "smoke": (True,),
    "threads": (1, 10**6),
}


def case(random):
    """({name: text}, what to sweep, more settings)."""
    chosen = {name: _text(random) for name in random.sample(NAMES, random.randrange(4))}
    sweep = random.choice(
        ("", f"{random.choice(NAMES)}={_text(random)}", random.choice(NAMES), None, None)
    )
    few = random.sample(sorted(SETTINGS), random.choice((0, 0, 0, 1, 2)))
    return chosen, sweep, {name: random.choice(SETTINGS[name]) for name in few}


def check(case, folder):
    """Plan the runs as the command line does. UsageError, of some lines, is the only refusal."""
    chosen, sweep, settings = case
    launches = [Launch(_entry())]
    taken = unless_refused(options_of, launches[0], None, {"device": "cpu", **settings})
    if taken is None:
        return
    options = replace(taken, chosen=chosen)
    if sweep is not None:
        launches = unless_refused(sweep_launches, launches[0], [sweep], options) or []
    assert len(launches) <= 200
    for launch in launches:
        check_plan(launch, options)


@cache
def _entry():
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.py"
        path.write_text(SOURCE)
        return read_file(path)


def _text(random):
    kind = random.randrange(5)
    if kind < 2:
        return random.choice(RAW)
    if kind == 2:
        return random.choice((*NUMBERS, *TEXTS, *OTHERS))
    if kind == 3:
        return ",".join(random.choice((*RAW, *NUMBERS)) for _ in range(random.choice((1, 3, 300))))
    return value(random, 3)
