"""Write short stories with a word-level recurrent language model."""
import os
import tempfile
import time

import torch
import torch.nn as nn

from story_sampling_flawed import NucleusSampler

SYLLABLES = ["ka", "lo", "mi", "ren", "tu", "sha", "vel", "dor", "an", "is", "qua", "pe", "no", "ri", "go", "um"]


def build_words(count):
    words = ["<end>"]
    n = len(SYLLABLES)
    for i in range(count - 1):
        words.append(SYLLABLES[i % n] + SYLLABLES[i // n % n] + SYLLABLES[(i // (n * n)) % n])
    return words


class StoryModel(nn.Module):
    def __init__(self, vocab, dim=256, hidden=768, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, num_layers=layers, batch_first=True)
        self.project = nn.Linear(hidden, dim)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, ids, state=None):
        out, state = self.rnn(self.embed(ids), state)
        logits = torch.tanh(self.project(out)) @ self.embed.weight.T + self.bias
        return logits, state


def load_model(path, vocab):
    model = StoryModel(vocab)
    model.load_state_dict(torch.load(path, weights_only=True))
    return model.eval()


@torch.inference_mode()
def write_story(model, sampler, prompt, length):
    history = list(prompt)
    logits, state = model(torch.tensor([history]))
    for _ in range(length):
        word = sampler.pick(logits[0, -1], history)
        history.append(word)
        if word == 0:
            break
        logits, state = model(torch.tensor([[word]]), state)
    return history


@torch.inference_mode()
def perplexity(model, story):
    ids = torch.tensor([story])
    logits, _ = model(ids[:, :-1])
    return nn.functional.cross_entropy(logits[0], ids[0, 1:]).exp().item()


def main(stories=6, length=170):
    torch.manual_seed(4)
    torch.set_num_threads(1)
    words = build_words(4000)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "story.pt")
        torch.save(StoryModel(len(words)).state_dict(), path)
        model = load_model(path, len(words))
    for number in range(stories):
        started = time.perf_counter()
        prompt = torch.randint(1, len(words), (5,)).tolist()
        story = write_story(model, NucleusSampler(seed=number), prompt, length)
        speed = (len(story) - 5) / (time.perf_counter() - started)
        text = " ".join(words[i] for i in story[:12])
        print(f"story {number}: {text} ... ppl {perplexity(model, story):.0f}, {speed:.0f} words/s")


if __name__ == "__main__":
    main()
