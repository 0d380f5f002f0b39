"""Do public scripts do the same when they are followed, byte for byte?

Their code is not kept here: FOLDER has a checkout of each repository, named OWNER+NAME. Each script
runs from a fresh copy of its repository, alone and followed; output, files and exit code are
compared. A script that prints times, and so differs from itself alone, is compared without them.

    python benchmarks/following_public.py FOLDER [PART OF A NAME ...]

It needs no network: some take their data from a text that is made here. `accelerate`, `lightning`
and `tensorboard` are installed for their rows. Half a minute a script.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "following")]

from alone_and_followed import Outcome, differences, run, steps_followed  # noqa: E402
from conftest import Lab  # noqa: E402

TEXT = "".join(f"the {n % 7} of {n % 11} and {n % 13} is {n % 17} .\n" for n in range(3000))
SEEDED = """
import random, runpy, sys
import numpy, torch
random.seed(0), numpy.random.seed(0), torch.manual_seed(0)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script that sets no seed."""
TIMES = re.compile(
    rb"[\d.]+ ?(?:ms|s|sec|seconds)\b|ms/batch +[\d.]+|time: +[\d.]+s|mfu [-\d.]+%|\d+:\d\d:\d\d\S*"
)
NANO = "--device=cpu --eval_iters=2 --block_size=16 --batch_size=4 --n_layer=1 --n_head=2 "
NANO += "--n_embd=16 --max_iters=100 --lr_decay_iters=100 --eval_interval=50 "
NANO += "--dataset=shakespeare_char --dtype=float32"
WORDS = "--data . --emsize 16 --nhid 16 --nlayers 1 --epochs 2 --batch_size 4 --log-interval 50"
SCRIPTS = (
    # repository, script, its arguments; then the text that is made, the files not compared
    ("jcjohnson/pytorch-examples", "tensor/two_layer_net_tensor.py", "", (), ()),
    ("jcjohnson/pytorch-examples", "autograd/two_layer_net_autograd.py", "", (), ()),
    ("jcjohnson/pytorch-examples", "autograd/two_layer_net_custom_function.py", "", (), ()),
    ("jcjohnson/pytorch-examples", "nn/two_layer_net_nn.py", "", (), ()),
    ("jcjohnson/pytorch-examples", "nn/two_layer_net_optim.py", "", (), ()),
    ("jcjohnson/pytorch-examples", "nn/two_layer_net_module.py", "", (), ()),
    ("jcjohnson/pytorch-examples", "nn/dynamic_net.py", "", (), ()),
    ("pytorch/examples", "regression/main.py", "", (), ()),
    ("pytorch/examples", "fx/invert.py", "", (), ()),
    ("pytorch/examples", "fx/replace_op.py", "", (), ()),
    ("pytorch/examples", "fx/wrap_output_dynamically.py", "", (), ()),
    ("pytorch/examples", "fx/subgraph_rewriter_basic_use.py", "", (), ()),
    ("pytorch/examples", "word_language_model/main.py", WORDS, ("train", "valid", "test"), ()),
    (
        "pytorch/examples",
        "word_language_model/main.py",
        f"{WORDS} --model Transformer --use-optimizer --lr 0.01",
        ("train", "valid", "test"),
        (),
    ),
    ("karpathy/ng-video-lecture", "bigram.py", "", (), ()),
    ("karpathy/nanoGPT", "train.py", f"{NANO} --compile=False", (), ()),
    ("karpathy/nanoGPT", "train.py", f"{NANO} --compile=True", (), ()),
    (
        "karpathy/minGPT",
        "projects/adder/adder.py",
        "--trainer.max_iters=300 --model.model_type=gpt-nano --data.ndigit=1",
        (),
        (),
    ),
    (
        "karpathy/makemore",
        "makemore.py",
        "--max-steps 300 --n-layer 1 --n-embd 16 --num-workers 1 --type rnn",
        (),
        ("events",),
    ),
    ("rtqichen/torchdiffeq", "examples/ode_demo.py", "--niters 40 --data_size 200", (), ()),
    ("rtqichen/torchdiffeq", "examples/ode_demo.py", "--niters 20 --adjoint", (), ()),
    ("locuslab/TCN", "TCN/copy_memory/copymem_test.py", "--epochs 1 --blank_len 20 --cuda", (), ()),
    ("hunkim/PyTorchZeroToAll", "05_linear_regression.py", "", (), ()),
    ("hunkim/PyTorchZeroToAll", "07_diabets_logistic.py", "", (), ()),
    ("hunkim/PyTorchZeroToAll", "08_2_dataset_loade_logistic.py", "", (), ()),
    ("hunkim/PyTorchZeroToAll", "12_3_hello_rnn_seq.py", "", (), ()),
    ("hunkim/PyTorchZeroToAll", "13_4_pack_pad.py", "", (), ()),
    ("MorvanZhou/PyTorch-Tutorial", "tutorial-contents/301_regression.py", "", (), ()),
    ("MorvanZhou/PyTorch-Tutorial", "tutorial-contents/305_batch_train.py", "", (), ()),
    ("MorvanZhou/PyTorch-Tutorial", "tutorial-contents/306_optimizer.py", "", (), ()),
    ("MorvanZhou/PyTorch-Tutorial", "tutorial-contents/403_RNN_regressor.py", "", (), ()),
    ("graykode/nlp-tutorial", "1-1.NNLM/NNLM.py", "", (), ()),
    ("graykode/nlp-tutorial", "2-1.TextCNN/TextCNN.py", "", (), ()),
    ("graykode/nlp-tutorial", "3-1.TextRNN/TextRNN.py", "", (), ()),
    ("graykode/nlp-tutorial", "4-1.Seq2Seq/Seq2Seq.py", "", (), ()),
    ("graykode/nlp-tutorial", "5-1.Transformer/Transformer.py", "", (), ()),
    (
        "yunjey/pytorch-tutorial",
        "tutorials/01-basics/linear_regression/main.py",
        "",
        (),
        (),
    ),
    ("huggingface/accelerate", "src/accelerate/test_utils/scripts/test_sync.py", "", (), ()),
    ("huggingface/accelerate", "src/accelerate/test_utils/scripts/test_script.py", "", (), ()),
    (
        "Lightning-AI/pytorch-lightning",
        "examples/pytorch/bug_report/bug_report_model.py",
        "",
        (),
        ("events", "hparams"),
    ),
)


def without_times(outcome, left_out):
    """The outcome without the times that the program prints."""
    files = {
        name: content
        for name, content in outcome.files.items()
        if not any(part in name for part in left_out) and "__pycache__" not in name
    }
    stdout, stderr = (TIMES.sub(b"(time)", text) for text in (outcome.stdout, outcome.stderr))
    return Outcome(outcome.code, stdout, stderr, files)


def compare(folder, repository, script, arguments, made, left_out):
    """What is printed of a script."""
    checkout = folder / repository.replace("/", "+")
    if not checkout.is_dir():
        return "no checkout of it"
    seeds_itself = re.search(r"^[^#\n]*manual_seed", (checkout / script).read_text(), re.MULTILINE)
    seeded = () if seeds_itself else ("-c", SEEDED)
    inside = Path(script).parent
    command = ["env", "-C", str(inside), "MPLBACKEND=Agg", "CUDA_VISIBLE_DEVICES="]
    command += ["python", *seeded, Path(script).name, *arguments.split()]

    def prepare(here):
        shutil.copytree(checkout, here, dirs_exist_ok=True, symlinks=True)
        for name in made:
            (here / inside / f"{name}.txt").write_text(TEXT)
        if "shakespeare" in arguments:
            prepare_text(here)

    def outcome(*, followed):
        return without_times(run(lab, command, prepare, followed=followed, timeout_s=300), left_out)

    with tempfile.TemporaryDirectory() as name:
        lab = Lab(Path(name))
        lab.env["PYTHONPATH"] = str(lab.folder / "here")
        alone = outcome(followed=False)
        found = differences(alone, outcome(followed=True))
        steps, recorded_s = steps_followed(lab)
        own = found and alone != outcome(followed=False)
    said = f"exit code {alone.code}, {steps} steps, {recorded_s:.1f} s recorded"
    if alone.code:
        said += f", {alone.stderr.splitlines()[-1:]}"
    if own:
        return f"differs from itself, alone ({said}): it shows nothing: {'; '.join(found)}"
    return f"{'; '.join(found) or 'the same'} ({said})"


def prepare_text(here):
    """What nanoGPT's prepare.py would have made of a text."""
    import pickle

    import numpy as np

    folder = here / "data" / "shakespeare_char"
    letters = sorted(set(TEXT))
    numbers = {letter: number for number, letter in enumerate(letters)}
    for name in ("train.bin", "val.bin"):
        np.array([numbers[letter] for letter in TEXT], dtype=np.uint16).tofile(folder / name)
    meta = {"vocab_size": len(letters), "itos": dict(enumerate(letters)), "stoi": numbers}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for repository, script, arguments, made, left_out in SCRIPTS:
        name = f"{repository}/{script} {arguments}".strip()
        if len(sys.argv) == 2 or any(part in name for part in sys.argv[2:]):
            said = compare(Path(sys.argv[1]), repository, script, arguments, made, left_out)
            print(f"{name}: {said}", flush=True)


if __name__ == "__main__":
    main()
