"""The reports of all recorded runs, a field a line. `python tests/recorded.py` stores them."""

import json

import recorded

NAMES = recorded.ALL


def text_of(name, folder):
    return _lines(recorded.report_json(name, folder))


def stored_text(name):
    from same_everywhere import masked

    stored = recorded.stored_reports().get(name)
    return masked(_lines(stored), recorded.CORPUS / "nowhere") if stored else ""


def _lines(document):
    return "\n".join(_fields(document, ""))


def _fields(value, path):
    """Sorted `path = value`, one a leaf."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _fields(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for place, member in enumerate(value):
            yield from _fields(member, f"{path}[{place}]")
    else:
        yield f"{path} = {json.dumps(value, ensure_ascii=False)}"
