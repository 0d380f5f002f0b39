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
    "minus a text": (params('-"a"'), "not a number"),
    "a table as a key": (scenario("params={{}: 1}"), "keys that are no texts"),
    "a number as a key": (scenario("params={1: 1}"), "keys that are no texts"),
    "a sum of a thousand": (params("+".join("1" * 1000)), "nested more than 20 deep"),
    "a tower of powers": (params("(((9**64)**64)**64)**64"), "beyond 9223372036854775807"),
    "a power of a negative": (params("(-8)**0.5"), "not a literal"),
    "an exponent below -64": (params("2.5**-65"), "exponent above 64"),
    "a number of 4,301 digits": (params("1" * 4301), "Exceeds the limit"),
    "a hexadecimal number of 5,000 digits": (
        params("0x" + "f" * 5000),
        "beyond 9223372036854775807",
    ),
    "infinity": (params("1e999"), "not a finite number"),
    "an infinite product": (params("1e308 * 10"), "not a finite number"),
    "no number": (params("1e308 * 10 - 1e308 * 10"), "not a finite number"),
    "a complex number": (params("1j"), "not a literal"),
    "an ellipsis": (params("..."), "not a literal"),
    "bytes": (params("b'a'"), "not a literal"),
    "nothing": (params("None"), "maps names to bool, int, float, str"),
    "a surrogate": (params(r"'\ud800'"), "surrogate"),
    "a surrogate in a claim": (scenario(r"claim='\udfff'"), "surrogate"),
    "a surrogate in a name": (scenario(r"params={'\ud800': 1}"), "surrogate"),
    "a text of 5,000 characters": (scenario(f"claim='{'a' * 5000}'"), "more than 4096 characters"),
    "a deep list": (scenario(f"sweep={{'n': {'[' * 60}{']' * 60}}}"), "nested more than 20 deep"),
    "brackets without end": ("(" * 90_000, "too many nested"),
    "signs without end": ("-" * 90_000 + "1", "nested too deeply"),
    "a complex number to sweep": (scenario("params={'n': 1}, sweep={'n': (1j,)}"), "not a literal"),
    "a list to sweep": (scenario("params={'n': 1}, sweep={'n': ((1,),)}"), "for 'n' it has (1,)"),
    "nothing to sweep": (scenario("params={'n': 1}, sweep={'n': ()}"), "write 1 to 200"),
    "201 values to sweep": (
        scenario(f"params={{'n': 1}}, sweep={{'n': ({'1,' * 201})}}"),
        "write 1 to 200",
    ),
    "101 parameters": (
        scenario(f"params={dict.fromkeys(map('n{}'.format, range(101)), 1)}"),
        "at most 100",
    ),
    "a huge table": (
        scenario(f"params={dict.fromkeys(map('n{}'.format, range(5_000)), 1)}"),
        "at most 100",
    ),
    "a path as a name": (scenario("params={'../../x': 1}"), "a name that an argument can have"),
    "a keyword as a name": (scenario("params={'lambda': 1}"), "a name that an argument can have"),
    "an empty name": (scenario("params={'': 1}"), "a name that an argument can have"),
    "a name of 101 characters": (scenario(f"params={{'{'n' * 101}': 1}}"), "at most 100"),
    "no table": (scenario("params=('n1', 'n2')"), "write a dict"),
    "an assignment in the environment": (scenario("env={'A=B': 'c'}"), "a name has no '='"),
    "a null in the environment": (scenario(r"env={'A': 'c\0'}"), "NUL"),
    "a nameless variable": (scenario("env={'': 'c'}"), "a name has no '='"),
    "201 variants": (
        scenario("")
        + "".join(f"@scenario.variant\ndef a{number}(lab): ...\n" for number in range(200)),
        "more than 200 variants",
    ),
    "a variant of 101 characters": (
        scenario("") + f"@scenario.variant\ndef {'b' * 101}(lab): ...\n",
        "at most 100",
    ),
    "a null": (scenario("") + "\0", "null bytes"),
    "a coding": ("# coding: utf-7\n" + scenario(""), "its coding is utf-7"),
    "a coding in the second line": (
        "#!/usr/bin/python\n# -*- coding: latin-1 -*-\n" + scenario(""),
        "latin-1",
    ),
    "a coding after a carriage return": (
        "\r# vim: set fileencoding=cp1252 :\n" + scenario(""),
        "cp1252",
    ),
    "a million lines": ("a\n" * 400_000, "more than 100000 words"),
    "a million numbers": (f"[{NUMBERS}]", "more than 100000 words"),
    "strings without number": ('"",' * 300_000, "more than 100000 words"),
    "comments without number": ("#\n" * 400_000, "more than 100000 words"),
    "numbers in an f-string": (f"f'{{[{NUMBERS}]}}'", "more than 100000 words"),
    "numbers after a quote in an f-string": (
        f"""f"{{'"'}}", [{NUMBERS}] # '""",
        "more than 100000 words",
    ),
    "numbers after an f-string that begins with a quote": (
        f"""f\"\"\"" \"\"\"; [{NUMBERS}]""",
        "more than 100000 words",
    ),
    "numbers after a string of two lines": (
        f"""x = "\\\r\n", [{NUMBERS}] # \"""",
        "more than 100000 words",
    ),
    "a string without end": ('"' + '\\"' * 400_000, "unterminated string"),
    "three quotes without end": ('"""' + '\\"' * 400_000, "unterminated triple-quoted"),
}
"""By what they hold: text, and what is said of it."""
if sys.version_info < (3, 12):
    REFUSED["a long text with braces"] = ('f"' + "{a}" * 30_000 + '"', "30000 braces")
    REFUSED["braces in a long text"] = ('f"' + "b" * 900_000 + "{a}" * 2_000 + '"', "2000 braces")
ACCEPTED = {
    "a long source of CUDA": scenario("") + f'CUDA = r"""{CUDA}"""\n',
    "a long source of CUDA in a string of each kind": scenario("")
    + f"CUDA = r'''{CUDA[:-4]}'''\nB = {CUDA!r}\n",
    "long comments": scenario("") + "# a b c d e f g h i j\n" * 20_000,
    "a byte order mark": "\ufeff" + scenario(""),
    "a coding of UTF-8": "# -*- coding: utf8 -*-\n" + scenario(""),
    "a byte order mark and a coding": "\ufeff# coding: UTF-8\n" + scenario(""),
    "a comment on coding": scenario("") + "# coding: utf-7\n",
    "an escape that Python warns of": scenario("", r"x = '\d' is 3" + "\n"),
    "carriage returns": scenario("").replace("\n", "\r"),
    "a surrogate in a title": r'"""A \ud800 title"""' + "\n" + scenario(""),
    "a lesson of a million lines": f'"""{" " * 80_000}\n a"""\n' + scenario(""),
    "a docstring of a megabyte": f'"""{"a" * 900_000}"""\n' + scenario(""),
    "the largest number": params("2**62 + (2**62 - 1)"),
    "many lines in a claim": scenario(r"claim='a\nb\u2028c'"),
}
