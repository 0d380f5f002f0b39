"""Scenario files with texts that are wrong, huge or odd."""

VARIANT = "@scenario.variant\ndef a(lab): ...\n"


def scenario(keywords, head=""):
    return f"{head}from gpulab import Scenario\nscenario = Scenario('t', {keywords})\n{VARIANT}"


def params(value):
    return scenario(f"params={{'n': {value}}}")


REFUSED = {
    "a number as a key": (scenario("params={1: 1}"), "keys that are no texts"),
    "infinity": (params("1e999"), "not a finite number"),
    "a surrogate": (params(r"'\ud800'"), "surrogate"),
    "a text of 5,000 characters": (scenario(f"claim='{'a' * 5000}'"), "at most 4096"),
    "signs without end": ("-" * 90_000 + "1", "nested too deeply"),
    "a huge table": (
        scenario(f"params={dict.fromkeys(map('n{}'.format, range(5_000)), 1)}"),
        "at most 100",
    ),
    "a path as a name": (scenario("params={'../../x': 1}"), "a name that an argument can have"),
    "a null in the environment": (scenario(r"env={'A': 'c\0'}"), "NUL"),
}
"""By what they hold: text, and what is said of it."""
ACCEPTED = {
    "a byte order mark and a coding": "\ufeff# coding: UTF-8\n" + scenario(""),
    "an escape that Python warns of": scenario("", r"x = '\d' is 3" + "\n"),
    "carriage returns": scenario("").replace("\n", "\r"),
    "a surrogate in a title": r'"""A \ud800 title"""' + "\n" + scenario(""),
    "many lines in a claim": scenario(r"claim='a\nb\u2028c'"),
}
