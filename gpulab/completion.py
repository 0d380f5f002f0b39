"""`--completion`: what a shell needs to complete modes, flags and scenarios, from their
declarations.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.catalog.catalog import catalog
from gpulab.modes import MODES, Mode
from gpulab.options import Options, UsageError, flags, helps

_BASH = """\
_gpulab() {{
  local word flags="{modes}"
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in
      --) return ;;
{cases}
    esac
  done
  COMPREPLY=($(compgen -W "$flags" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _gpulab gpulab
"""
_NAMES_A_SCENARIO = (Mode.RUN, Mode.SHOW, Mode.REPLAY, Mode.HISTORY, Mode.COMPARE)


def print_completion(shell: str, _: Options) -> int:
    """Print the script. UsageError of another shell."""
    if shell == "fish":
        print("\n".join(_fish()))
    elif shell in ("bash", "zsh"):
        print("autoload -Uz bashcompinit && bashcompinit\n" * (shell == "zsh") + _bash(), end="")
    else:
        raise UsageError(f"--completion {shell}: write bash, zsh or fish")
    return 0


def _modes() -> dict[str, Mode]:
    return {mode.lstrip("-"): mode for mode, each in MODES.items() if each.help}


def _bash() -> str:
    names = " ".join(entry.name for entry in catalog())
    cases = []
    for name, mode in _modes().items():
        words = [flag.name for flag in flags().values() if mode in flag.modes]
        if mode in _NAMES_A_SCENARIO:
            words.append(names)
        cases.append(f'      {name}|{mode}) flags="{" ".join(words)}" ;;')
    return _BASH.format(modes=" ".join(_modes().values()), cases="\n".join(cases))


def _fish() -> Iterator[str]:
    names = " ".join(entry.name for entry in catalog())
    for name, mode in _modes().items():
        yield f"complete -c gpulab -l {name} -d '{MODES[mode].help}'"
        given = f"__fish_contains_opt {name}; or __fish_seen_subcommand_from {name}"
        chosen = f"complete -c gpulab -n '{given}'"
        for option, flag in flags().items():
            if mode not in flag.modes:
                continue
            text = helps()[option].replace("'", "\\'")
            yield f"{chosen} -l {flag.name.lstrip('-')} -d '{text}'"
        if mode in _NAMES_A_SCENARIO:
            yield f"{chosen} -a '{names}'"
