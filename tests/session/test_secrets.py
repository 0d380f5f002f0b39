"""What a run file has of a program's arguments."""

import pytest

from gpulab.core.secrets import masked


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("train.py --token abc --epochs 1", "train.py --token *** --epochs 1"),
        ("train.py --api-key=abc", "train.py --api-key=***"),
        ("train.py -password abc", "train.py -password ***"),
        ("train.py --hub_token --push", "train.py --hub_token --push"),
        (
            "env HF_TOKEN=abc WANDB_API_KEY=x=y train.py",
            "env HF_TOKEN=*** WANDB_API_KEY=*** train.py",
        ),
        (
            "env AWS_SECRET_ACCESS_KEY=abc KEY=abc true",
            "env AWS_SECRET_ACCESS_KEY=*** KEY=*** true",
        ),
        ("train.py +logger.api_key=abc", "train.py +logger.api_key=***"),
        ("get https://me:abc@host/data", "get https://me:***@host/data"),
        ("train.py --max-tokens 8 --tokenizer gpt2", "train.py --max-tokens 8 --tokenizer gpt2"),
        ("train.py monkey=1 --keys 3 --lr=0.1", "train.py monkey=1 --keys 3 --lr=0.1"),
    ],
)
def test_values_of_what_is_named_like_a_secret_are_masked(command, shown):
    assert masked(command.split()) == shown.split()


def test_also_within_a_command_of_a_shell():
    command = "HF_TOKEN=abc train.py --password abc && curl -H 'Authorization: Bearer abc'"
    assert masked(["sh", "-c", command])[2] == (
        "HF_TOKEN=*** train.py --password *** && curl -H 'Authorization: Bearer ***"
    )
