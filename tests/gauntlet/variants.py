"""Files of many variants: what each says of itself, and a file in which it is alone with its
baseline.
"""

import ast


def docstrings(folder):
    """By variant, baselines left out: its file, and its docstring."""
    return {
        function.name: (path, ast.get_docstring(function) or "")
        for path in sorted(folder.glob("*.py"))
        for function in _variants(path.read_text())[1:]
    }


def decorators(path):
    """By variant of a file, its baseline left out: the text of its decorator."""
    return {
        function.name: ast.unparse(function.decorator_list[0])
        for function in _variants(path.read_text())[1:]
    }


def alone(path, name):
    """The text of a file without all variants but the first and that one."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    for function in reversed(_variants(text)[1:]):
        if function.name != name:
            del lines[function.decorator_list[0].lineno - 1 : function.end_lineno]
    return "".join(lines)


def _variants(text):
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return [
        function
        for function in functions
        if "scenario.variant" in map(_called, function.decorator_list)
    ]


def _called(decorator):
    return ast.unparse(decorator).partition("(")[0]
