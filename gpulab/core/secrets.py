"""Values in the arguments of a program that look like secrets, written down as `***`.

They are known by the name before them: a `--pad-token` is masked as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"
_SECRET = r"(?:token|password|passwd|passphrase|pwd|secret|credentials?|(?:api|access|\b)[-_.]?key)"
_NAME = rf"[\w.+-]*(?:{_SECRET}|[-_.]key)"
_ASSIGNED = re.compile(rf"(?<![\w.+-])({_NAME})=(?!=)(\S+)", re.IGNORECASE)
_FOLLOWED = re.compile(rf"(?<!\S)(--?{_NAME})(\s+)(?!-)(\S+)", re.IGNORECASE)
_FLAG = re.compile(rf"--?{_NAME}", re.IGNORECASE)
_USER = re.compile(r"(\w://[^\s/:@]*):[^\s/@]+@")
_BEARER = re.compile(r"(\bbearer\s+)\S+", re.IGNORECASE)


def masked(words: Sequence[str]) -> list[str]:
    """`--token X`, `--api-key=X`, `HF_TOKEN=X`, `https://user:X@host` and `Bearer X` without X,
    also within a word, such as a command of a shell.
    """
    shown = []
    hides_next = False
    for word in words:
        if hides_next and not word.startswith("-"):
            shown.append(MASK)
            hides_next = False
            continue
        hides_next = _FLAG.fullmatch(word) is not None
        shown.append(_mask_word(word))
    return shown


def _mask_word(word: str) -> str:
    word = _ASSIGNED.sub(rf"\1={MASK}", word)
    word = _FOLLOWED.sub(rf"\1\2{MASK}", word)
    word = _USER.sub(rf"\1:{MASK}@", word)
    return _BEARER.sub(rf"\1{MASK}", word)
