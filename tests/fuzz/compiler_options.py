"""A scenario's CUDA C++ with odd options, includes and names: whatever comes of it, no file is
written.
"""

from gpulab.core.payloads import KernelText
from gpulab.features.kernels.compiler import CompileError, compile_kernel

KERNEL = "__global__ void k(int* a) { *a = 1; }\n"
MOST_LENGTH = 100_000
NAMES = (
    *(
        "D",
        "U",
        "I",
        "G",
        "std",
        "ftz",
        "fmad",
        "prec-div",
        "prec-sqrt",
        "maxrregcount",
        "restrict",
    ),
    *("lineinfo", "generate-line-info", "use_fast_math", "extra-device-vectorization", "w"),
    *("define-macro", "undefine-macro", "include-path", "default-device", "create-pch", "use-pch"),
    *("pch", "pch-dir", "pre-include", "include", "fdevice-time-trace", "ptxas-options", "Xptxas"),
    *("dlto", "arch", "gpu-architecture", "no-source-include", "time", "dump", "o", "output-file"),
    *(
        "create_pch",
        "fdevice_time_trace",
        "x",
        "E",
        "M",
        "MD",
        "keep",
        "split-compile",
        "",
        "-",
        "é",
    ),
)
VALUES = (
    *(
        "{}",
        "../secret.h",
        "..",
        ".",
        "/",
        "/etc/passwd",
        "/dev/zero",
        "own",
        "sub",
        "true",
        "false",
    ),
    *(
        "X=1",
        "X",
        "X(a)=a",
        "c++17",
        "c++14",
        "32",
        "-1",
        "9" * 30,
        "",
        " ",
        "=",
        "\n",
        "\0",
        "\ud800",
    ),
    *(
        "X=\n#include </etc/passwd>",
        "a,b",
        "a:{}",
        "sub,{}",
        "sub --create-pch={}",
        "X=1\t",
        "\x1b[2J",
    ),
    *("x" * 5000, "'{}'", '"{}"', "$HOME", "~", "X=1\\", "k=1", "__global__=", "include=embed"),
)
STARTS = ("-", "-", "--", "--", "", "---", "/", "@", " -", "\n--", "+")
JOINTS = ("=", "=", "", " ", "  ", "\t", "\n", ":", "==", "\0")
DIRECTIVES = (
    *("#include", "#include", "%:include", "??=include", "#include_next", "#import", "#embed", "#"),
    *("#inc\\\nlude", "#inc??/\nlude", "#/**/include", "#\finclude", "# include/**/", "import"),
    *(
        "#if __has_include(",
        "#\\\n\\\ninclude",
        "/*",
        '"/*"\n#/*x*/include',
        "//\\\n#include",
        "#line 1",
    ),
    *("#define X", "#pragma once", 'R"(', "#\0include", "#if 0\n#include"),
)
OPERANDS = (
    *(
        '"{}"',
        "<{}>",
        '"../secret.h"',
        "<../secret.h>",
        "X",
        "__FILE__",
        '"link.h"',
        '"sub/inner.h"',
    ),
    *(
        '"sub/../../secret.h"',
        '"zero.h"',
        '"."',
        '""',
        "<>",
        '"\0"',
        '"own.h"',
        '"/dev/zero"',
        '"{}',
    ),
    *('"' + "a" * 5000 + '"', '"' + "../" * 500 + 'etc/passwd"', '"pipe.h"', "<own.h>", '"\udcff"'),
    *(
        '"/proc/self/environ"',
        '"/proc/self/fd/0"',
        '"sub"',
        '".hidden"',
        "{}",
        "'{}'",
        '"sub/own.h"',
    ),
)
KERNEL_NAMES = (
    "k",
    "k",
    "k",
    'k\n#include "{}"\n',
    "",
    "\0",
    "k<1>",
    'k\\\n#include "{}"',
    "x" * 5000,
)


def case(random):
    """(options, source, name of the kernel)."""
    options = []
    for _ in range(random.choice((0, 0, 1, 1, 2, 4))):
        start, joint = random.choice(STARTS), random.choice(JOINTS)
        options.append(f"{start}{random.choice(NAMES)}{joint}{random.choice(VALUES)}")
        if random.randrange(4) == 0:
            options.append(random.choice(VALUES))
    lines = [KERNEL]
    for _ in range(random.choice((0, 1, 1, 2))):
        line = f"{random.choice(DIRECTIVES)} {random.choice(OPERANDS)}\n"
        lines.insert(random.randrange(2), line * random.choice((1, 1, 1, 1, 5000)))
    return options, "".join(lines), random.choice(KERNEL_NAMES)


def check(case, folder):
    """Compile it. CompileError, of some lines, is the only refusal."""
    options, source, name = case
    own = folder / "own"
    secret = folder / "secret.h"
    if not own.exists():
        _prepare(folder)
    before = _state(folder)
    path = str(secret)
    text = KernelText(
        name.replace("{}", path),
        source.replace("{}", path),
        1,
        tuple(option.replace("{}", path) for option in options),
    )
    try:
        compiled = compile_kernel(text, "sm_90", str(own / "mine.py"))
    except CompileError as error:
        said = "\n".join([error.msg, *getattr(error, "__notes__", ())])
    else:
        said = compiled.ptx + compiled.log
    assert len(said) < MOST_LENGTH
    assert _state(folder) == before


def _prepare(folder):
    own = folder / "own"
    (own / "sub").mkdir(parents=True)
    (own / "mine.py").write_text("")
    (own / "own.h").write_text("#define OWN 1\n")
    (own / "sub" / "own.h").write_text('#include "../own.h"\n')
    (own / "sub" / "inner.h").write_text('#include "../../secret.h"\n')
    (own / "zero.h").write_bytes(b'#\0include "../secret.h"\n')
    (own / ".hidden").write_text("other words;\n")
    (own / "link.h").symlink_to(folder / "secret.h")
    (folder / "secret.h").write_text("other words;\n")


def _state(folder):
    """Every file, with its content."""
    return {
        path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }
