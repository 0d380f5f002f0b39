"""Speculative decoding: a small model guesses ahead, the large one checks all guesses at once.

**In short:** a large model reads all its weights for one row or for five, so let it check guesses instead of making single tokens.

```text
               time ──────────────────────────────▶
greedy         ████ ████ ████ ████    4 tokens, each a pass
               T    T    T    T

draft_beside   ▒ ▒ ▒ ▒ ████           4 guesses, one pass:
               d d d d T              3 right, and T's own

draft_remote   the same, d on rank 1 and T on rank 0
               T the target    d the draft, much smaller
```

| variant | what changes | expected (two H100s) | why |
|---|---|---|---|
| `greedy` | the target alone, a pass for each token | baseline, 205 ms | the time is that of reading the weights, once a token |
| `draft_beside` | guesses by a draft, on the target's rank | 1.65x | 3.37 tokens a pass, 59 % of the guesses accepted; the drafts take time too |
| `draft_remote` | guesses by a draft on another rank | 1.59x | also two messages a pass, where only latency counts |

## What a pass gives

Generating a token reads all weights for one row of activations, and the next token cannot begin
before it is known. The arithmetic units have next to nothing to do. So a few rows more cost the same
reading. The draft guesses `ahead` tokens one after the other. The target takes all in one pass, and
says which token it would have chosen at each place. Guesses count up to the first that differs;
there the target's own token stands. A pass yields 1 to `ahead` + 1 tokens.

## Three numbers

For a guess right with probability a, k guesses ahead, and the draft's share c of the target's time:

    tokens a pass    (1 - a^(k+1)) / (1 - a)
    time of a pass   1 + k c

At a = 0.8, k = 4, c = 0.1 that is 3.4 tokens in the time of 1.4: 2.4x.

The draft is the first `draft_layers` layers of the target with its output layer. `correction` is
how strongly each later layer changes their result. Weights are random; acceptance is what it comes
out as.

## Where it does not help

A draft that is seldom right makes it slower: `--set correction=1`. On a CPU a pass of several rows
costs more than one of one, and the gain is smaller. `draft_remote` sends 8 (`ahead` + 2) bytes a
pass. It pays where the draft's memory is needed, or one draft serves several targets. Here the
ranks wait for each other, so nothing overlaps.

## The same tokens

With greedy choice the output is the target's, token for token: another token makes a variant
*wrong*. That takes fp32, or care. A pass of several rows adds up in another order, and in bf16 two
tokens are often near enough for that to exchange them.
"""

import torch
import torch.distributed as dist

from gpulab import Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={
        "width": 8192,
        "layers": 16,
        "draft_layers": 2,
        "correction": 0.06,
        "vocabulary": 512,
        "window": 8,
        "tokens": 64,
        "ahead": 4,
    },
    cpu={"width": 384, "layers": 12, "tokens": 24},
    smoke={"width": 64, "layers": 4, "correction": 0.5, "vocabulary": 64, "tokens": 12},
    sweep={"ahead": (1, 2, 4, 8)},
    ranks=2,
    item="token",
    claim="arXiv 2211.17192: 2x to 3x faster than plain decoding, with identical outputs",
    terms=("draft model", "llm", "inference", "tokens per second"),
)


@scenario.variant
def greedy(lab, width, layers, draft_layers, correction, vocabulary, window, tokens):
    """The target alone, a pass for each token."""
    target = _Model(lab, width, layers, draft_layers, correction, vocabulary, window)
    prompt, text = _texts(lab, vocabulary, window, window + tokens)

    def step():
        text[:window] = prompt
        if lab.rank == 0:
            for at in range(window, window + tokens):
                text[at] = target.choose(text[at - window : at][None], layers)[0]
        dist.broadcast(text, 0, group=lab.group)
        lab.report("tokens per pass", 1)

    read = tokens * target.bytes_of(layers)
    return Work(step, bytes=read, items=tokens, inputs=prompt, output=text[window:])


@scenario.variant
def draft_beside(lab, width, layers, draft_layers, correction, vocabulary, window, tokens, ahead):
    """A small draft guesses ahead on the rank of the target, which checks all guesses in one pass."""
    model = _Model(lab, width, layers, draft_layers, correction, vocabulary, window)
    return _speculate(
        lab, model, layers, draft_layers, vocabulary, window, tokens, ahead, drafter=0
    )


@scenario.variant
def draft_remote(lab, width, layers, draft_layers, correction, vocabulary, window, tokens, ahead):
    """The same, with the draft on another rank: guesses and verdicts are sent."""
    depth = layers if lab.rank == 0 else draft_layers
    model = _Model(lab, width, depth, draft_layers, correction, vocabulary, window)
    return _speculate(
        lab, model, layers, draft_layers, vocabulary, window, tokens, ahead, drafter=1
    )


class _Model:
    """Chooses the next token by the last `window` ones: the same on all ranks, but for its depth."""

    def __init__(self, lab, width, depth, strong, correction, vocabulary, window):
        generator = torch.Generator(lab.device).manual_seed(0)

        def weights(rows, columns, deviation):
            values = torch.randn(rows, columns, generator=generator, device=lab.device)
            return values.mul_(deviation)

        self.width = width
        self.embedding = weights(vocabulary, width // window, 1)
        self.output = weights(width, vocabulary, width**-0.5)
        self.layers = []
        for layer in range(depth):
            strength = 1 if layer < strong else correction
            up = weights(width, width, width**-0.5)
            self.layers.append((up, weights(width, width, strength * (2 / width) ** 0.5)))

    def choose(self, windows, depth):
        """The next token after each window, by so many layers."""
        rows = self.embedding[windows].flatten(1)
        for up, down in self.layers[:depth]:
            rows = rows + torch.relu(self._normal(rows) @ up) @ down
        return (self._normal(rows) @ self.output).argmax(-1)

    def bytes_of(self, depth):
        """What a pass reads."""
        return self.output.nbytes + sum(up.nbytes + down.nbytes for up, down in self.layers[:depth])

    def _normal(self, rows):
        return torch.nn.functional.layer_norm(rows, (self.width,))


def _texts(lab, vocabulary, window, length):
    """(a prompt of `window` tokens, room for a text)."""
    prompt = torch.randint(vocabulary, (window,), device=lab.device)
    return prompt, torch.zeros(length, dtype=torch.int64, device=lab.device)


def _speculate(lab, model, layers, draft_layers, vocabulary, window, tokens, ahead, drafter):
    """`drafter`: the rank of the draft; rank 0 has the target."""
    end = window + tokens
    prompt, text = _texts(lab, vocabulary, window, end + ahead)  # the last guesses may go beyond
    verdict = torch.empty(2, dtype=torch.int64, device=lab.device)
    takes_part = lab.rank in (0, drafter)

    def guess(at):
        for place in range(at, at + ahead):
            text[place] = model.choose(text[place - window : place][None], draft_layers)[0]

    def verify(at):
        windows = text[at - window : at + ahead].unfold(0, window, 1)
        chosen = model.choose(windows, layers)
        agreed = (chosen[:ahead] == text[at : at + ahead]).cumprod(0).sum()
        verdict[0] = agreed
        verdict[1:] = chosen.index_select(0, agreed[None])

    def one_pass(at):
        """Where the text goes on."""
        if lab.rank == drafter:
            guess(at)
        if drafter != 0:
            _send(lab, text[at : at + ahead], drafter, 0)
        if lab.rank == 0:
            verify(at)
        if drafter != 0:
            _send(lab, verdict, 0, drafter)
        agreed, token = verdict.tolist()
        text[at + agreed] = token
        return at + agreed + 1

    def step():
        text[:window] = prompt
        dist.broadcast(text[:window], 0, group=lab.group)
        at = window
        passes = 0
        while at < end and takes_part:
            at = one_pass(at)
            passes += 1
        if drafter == 0:
            dist.broadcast(text, 0, group=lab.group)
        if passes:
            lab.report("tokens per pass", (at - window) / passes)
            lab.report("acceptance", ((at - window) / passes - 1) / ahead)

    return Work(step, items=tokens, inputs=prompt, output=text[window:end])


def _send(lab, tensor, source, destination):
    if lab.rank == source:
        dist.send(tensor, destination, group=lab.group)
    elif lab.rank == destination:
        dist.recv(tensor, source, group=lab.group)
