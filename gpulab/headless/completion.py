"""`--completion`: what a shell completes, made of the declared options."""

from __future__ import annotations

from gpulab.catalog.catalog import catalog
from gpulab.modes import MODES
from gpulab.options import FLAGS, Options
from gpulab.session.settings import UsageError

_BASH = """\
_gpulab() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" mode="${{COMP_WORDS[1]#--}}" flags
  case "$mode" in
{cases}
    *) flags="{modes}" ;;
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word") $(compgen -W "{lessons}" -- "$word")) ;;
  esac
}}
complete -o filenames -F _gpulab gpulab
"""


def completion(shell: str, options: Options) -> int:
    """Print the script for a shell: eval "$(gpulab --completion bash)". UsageError of others."""
    if shell in ("bash", "zsh"):
        prefix = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
        print(prefix + _for_bash(), end="")
        return 0
    if shell != "fish":
        raise UsageError(f"--completion {shell}: write bash, zsh or fish")
    for mode in MODES:
        print(f"complete -c gpulab -l {mode.destination.replace('_', '-')} -d '{mode.help}'")
    for flag in FLAGS:
        print(f"complete -c gpulab -l {flag.name[2:]}")
    return 0


def _for_bash() -> str:
    cases = []
    for mode in MODES:
        flags = " ".join(flag.name for flag in FLAGS if mode.mode in flag.modes)
        cases.append(f'    {mode.mode[2:]}) flags="{flags}" ;;')
    modes = " ".join(mode.mode for mode in MODES)
    lessons = " ".join(entry.name for entry in catalog())
    return _BASH.format(cases="\n".join(cases), modes=modes, lessons=lessons)
