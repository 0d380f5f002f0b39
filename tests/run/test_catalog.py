"""Scenario files are read as text: fast, safe, and wrong ones are listed with their line and the mend."""

from pathlib import Path

import pytest

from gpulab.run import catalog as catalogs
from gpulab.run.catalog import ScenarioNotFoundError, catalog, find, read_file
from gpulab.run.reader import UnreadableError, literal, read_source
from gpulab.run.request import Settings, UsageError, request_for

EXAMPLE = (Path(__file__).parent / "example.py").read_text()
HEAD = "from gpulab import MiB, Scenario\n"
VARIANT = "@scenario.variant\ndef a(lab): ...\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_example_of_the_readme_is_read():
    found = read_source(EXAMPLE)
    assert found.lesson.startswith("Pinned memory: page-locked")
    assert found.scenario.params == {"mib": 256}
    assert list(found.scenario.variants) == ["pageable", "pinned"]
    assert found.scenario.variants["pinned"].summary == "Page-locked source: the copy engine reads it directly."


def test_nothing_is_executed(tmp_path):
    path = tmp_path / "evil.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + EXAMPLE)
    assert read_file(path).scenario
    assert not (tmp_path / "ran").exists()


def test_arithmetic_on_numbers_and_units_is_a_literal():
    text = HEAD + "scenario = Scenario('t', params={'n': 4 * MiB, 'p': 2**20, 'q': -(3 - 1) / 4})\n" + VARIANT
    assert read_source(text).scenario.params == {"n": 4 << 20, "p": 1 << 20, "q": -0.5}


BROKEN = {
    "syntax": ("scenario = Scenario('t'\n", 2, "never closed"),
    "unknown keyword": ("scenario = Scenario('t',\n  speed=3)\n", 3, "knows no 'speed'"),
    "repeated keyword": ("scenario = Scenario('t', claim='a', claim='b')\n", 2, "given twice"),
    "no literal": ("x = 3\nscenario = Scenario('t', params={'n': x})\n", 3, "params= is not a literal"),
    "a call": ("scenario = Scenario('t', claim=str(3))\n", 2, "claim= is not a literal"),
    "star keywords": ("more = {}\nscenario = Scenario('t', **more)\n", 3, "cannot be read"),
    "unknown need": ("scenario = Scenario('t', needs=('cuda', 'magic'))\n", 2, "needs='magic' is not one of"),
    "need as text": ("scenario = Scenario('t', needs='cuda')\n", 2, "write a tuple"),
    "unknown roof": ("scenario = Scenario('t', roof='the sky')\n", 2, "roof='the sky'"),
    "no topic": ("scenario = Scenario()\n", 2, "topic"),
    "no variants": ("scenario = Scenario('t')\n", 2, "without variants"),
    "two scenarios": ("scenario = Scenario('t')\nother = Scenario('t')\n", 3, "a second Scenario"),
    "smoke of no param": ("scenario = Scenario('t', smoke={'n': 1})\n", 2, "not in params"),
    "huge power": ("scenario = Scenario('t', params={'n': 9**9**9})\n", 2, "exponent"),
    "loop": (
        "scenario = Scenario('t')\nfor n in (1, 2):\n    @scenario.variant\n    def a(lab): ...\n",
        4,
        "in a loop",
    ),
    "called": ("scenario = Scenario('t')\ndef a(lab): ...\nscenario.variant(a)\n", 4, "a call"),
    "twice": (f"scenario = Scenario('t')\n{VARIANT}{VARIANT}", 6, "two variants are called 'a'"),
    "unknown parameter": ("scenario = Scenario('t')\n@scenario.variant\ndef a(lab, n): ...\n", 4, "wants 'n'"),
    "no lab": ("scenario = Scenario('t')\n@scenario.variant\ndef a(): ...\n", 4, "takes no lab"),
    "control": ("scenario = Scenario('t')\n@scenario.variant\ndef control(lab): ...\n", 4, "second build"),
    "against nothing": (
        f"scenario = Scenario('t')\n{VARIANT}@scenario.variant(against='z')\ndef b(lab): ...\n",
        6,
        "against='z'",
    ),
    "a baseline against another": (
        "scenario = Scenario('t')\n@scenario.variant(against=None)\ndef a(lab): ...\n",
        4,
        "the first variant is the baseline",
    ),
    "no number of claims": ("scenario = Scenario('t', claim=3)\n", 2, "claim= is a short text"),
    "an environment of numbers": ("scenario = Scenario('t', env={'A': 1})\n", 2, "env= maps names to str, None"),
    "unchecked without a reason": (
        "scenario = Scenario('t')\n@scenario.variant(unchecked=True)\ndef a(lab): ...\n",
        4,
        "unchecked= is a short text",
    ),
    "positional": ("scenario = Scenario('t', ('cuda',))\n", 2, "without a name"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_says_where_and_how_to_mend_it(name):
    body, line, message = BROKEN[name]
    with pytest.raises(UnreadableError) as caught:
        read_source(HEAD + body)
    assert caught.value.line == line
    assert message in caught.value.message
    assert caught.value.mend


@pytest.mark.parametrize("data", [b"\x00\x01", b"\xff\xfe", "x = '\udc80'".encode(errors="surrogatepass"), b"("])
def test_a_file_that_is_no_python_is_an_entry_with_an_error(tmp_path, data):
    path = tmp_path / "x.py"
    path.write_bytes(data)
    assert read_file(path).error


def test_a_broken_file_does_not_hide_the_others(tmp_path):
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "good.py").write_text(EXAMPLE)
    (folder / "bad.py").write_text(HEAD + "scenario = Scenario(\n")
    (folder / "helper.py").write_text("x = 1\n")
    names = {entry.name: entry for entry in catalog()}
    assert names["bad"].error
    assert names["good"].scenario
    assert "helper" not in names
    assert "batched_matmul" in names


def test_the_first_of_a_name_is_found(tmp_path, monkeypatch):
    for place in ("scenarios", "env", "given"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "optimizer_step.py").write_text(EXAMPLE)
    monkeypatch.setenv("GPULAB_SCENARIOS", str(tmp_path / "env"))
    assert find("optimizer_step").path.parent.name == "scenarios"
    (tmp_path / "scenarios" / "optimizer_step.py").unlink()
    assert find("optimizer_step").path.parent.name == "env"
    assert {entry.path.parent.name for entry in catalog([Path("given")]) if entry.name == "optimizer_step"} == {"given"}


def test_a_close_name_is_suggested():
    with pytest.raises(ScenarioNotFoundError, match="did you mean batched_matmul"):
        find("batched_matmull")


def test_a_file_without_a_scenario_is_an_error_when_named(tmp_path):
    (tmp_path / "mine.py").write_text("def step(): ...\n")
    with pytest.raises(ScenarioNotFoundError, match=r"mine\.py:FUNCTION, with one of step"):
        find("mine.py")


def test_what_ships_can_be_read_and_says_what_it_claims():
    shipped = [read_file(path) for path in catalogs.folders()[-1].glob("*.py")]
    assert len(shipped) >= 2
    for entry in shipped:
        assert entry.error is None
        assert entry.scenario.topic in catalogs.COURSE
        assert entry.scenario.claim
        assert entry.scenario.smoke
        assert len(entry.source.lesson) > 200
        assert all(variant.summary for variant in entry.scenario.variants.values())


def request(tmp_path, text=EXAMPLE, functions=(), **options):
    path = tmp_path / "x.py"
    path.write_text(text.replace('needs=("cuda",),', ""))
    return request_for(read_file(path), Settings(**{"device": "cpu", **options}), functions)


def test_parameters_come_from_the_scenario_then_the_smoke_run_then_the_user(tmp_path):
    assert request(tmp_path).params == {"mib": 256}
    assert request(tmp_path, smoke=True).params == {"mib": 1}
    assert request(tmp_path, smoke=True, chosen={"mib": "2 * 4"}).params == {"mib": 8}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chosen": {"mb": "1"}}, "no parameter 'mb'; it has mib=256"),
        ({"chosen": {"mib": "many"}}, "mib takes a whole number"),
        ({"chosen": {"mib": "1.5"}}, "mib takes a whole number"),
        ({"device": "gpu"}, "write cpu, cuda or cuda:N"),
        ({"functions": ["nothing"]}, "binds no 'nothing'"),
    ],
)
def test_a_mistake_in_the_request_is_told(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        request(tmp_path, **options)


def test_what_is_no_literal_has_no_value():
    import ast

    for text in ("f()", "x", "[*y]", "{**y}", "'a' * 3", "1 / 0", "f'{x}'"):
        with pytest.raises(ValueError):  # noqa: PT011
            literal(ast.parse(text, mode="eval").body)
