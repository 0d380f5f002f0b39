"""Scenario files that nobody should have to fear: texts that are wrong, huge, or made to be
expensive to read.
"""

import sys

VARIANT = "@scenario.variant\ndef a(lab): ...\n"


def scenario(keywords, head=""):
    return f"{head}from gpulab import Scenario\nscenario = Scenario('t', {keywords})\n{VARIANT}"


def params(value):
    return scenario(f"params={{'n': {value}}}")


NUMBERS = "1," * 400_000
CUDA = "__global__ void k(float *a, int n) { if (n > 0) { a[0] = 1; } }  // it's\n" * 5_000
REFUSED = {
    "a number as a key": (scenario("params={1: 1}"), "keys that are no texts"),
    "a sum of a thousand": (params("+".join("1" * 1000)), "nested more than 20 deep"),
    "a tower of powers": (params("(((9**64)**64)**64)**64"), "beyond 9223372036854775807"),
    "a number of 4,301 digits": (params("1" * 4301), "Exceeds the limit"),
    "infinity": (params("1e999"), "not a finite number"),
    "a surrogate": (params(r"'\ud800'"), "surrogate"),
    "a text of 5,000 characters": (scenario(f"claim='{'a' * 5000}'"), "more than 4096 characters"),
    "a deep list": (scenario(f"sweep={{'n': {'[' * 60}{']' * 60}}}"), "nested more than 20 deep"),
    "brackets without end": ("(" * 90_000, "too many nested"),
    "signs without end": ("-" * 90_000 + "1", "nested too deeply"),
    "a huge table": (
        scenario(f"params={dict.fromkeys(map('n{}'.format, range(5_000)), 1)}"),
        "at most 100",
    ),
    "a path as a name": (scenario("params={'../../x': 1}"), "a name that an argument can have"),
    "a null in the environment": (scenario(r"env={'A': 'c\0'}"), "NUL"),
    "a coding": ("# coding: utf-7\n" + scenario(""), "its coding is utf-7"),
    "a coding after a carriage return": (
        "\r# vim: set fileencoding=cp1252 :\n" + scenario(""),
        "cp1252",
    ),
    "a million lines": ("a\n" * 400_000, "more than 100000 words"),
    "strings without number": ('"",' * 300_000, "more than 100000 words"),
    "numbers after a quote in an f-string": (
        f"""f"{{'"'}}", [{NUMBERS}] # '""",
        "more than 100000 words",
    ),
    "three quotes without end": ('"""' + '\\"' * 400_000, "unterminated triple-quoted"),
}
"""By what they hold: text, and what is said of it."""
if sys.version_info < (3, 12):
    REFUSED["a long text with braces"] = ('f"' + "{a}" * 30_000 + '"', "30000 braces")
    REFUSED["braces in a long text"] = ('f"' + "b" * 900_000 + "{a}" * 2_000 + '"', "2000 braces")
ACCEPTED = {
    "a long source of CUDA": scenario("") + f'CUDA = r"""{CUDA}"""\n',
    "a byte order mark and a coding": "\ufeff# coding: UTF-8\n" + scenario(""),
    "an escape that Python warns of": scenario("", r"x = '\d' is 3" + "\n"),
    "carriage returns": scenario("").replace("\n", "\r"),
    "a surrogate in a title": r'"""A \ud800 title"""' + "\n" + scenario(""),
    "a docstring of a megabyte": f'"""{"a" * 900_000}"""\n' + scenario(""),
    "many lines in a claim": scenario(r"claim='a\nb\u2028c'"),
}
