"""The Trainer of transformers: a tiny model, evaluation, checkpoints, and training that goes on."""
# needs: transformers accelerate

import hashlib
import os
import shutil

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer
from transformers import TrainerCallback, TrainingArguments
from transformers.utils import logging

logging.disable_progress_bar()


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        row = (torch.arange(16) + index) % 50
        return {"input_ids": row, "labels": row}


class Losses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **rest):
        wanted = ("loss", "eval_loss", "learning_rate", "grad_norm")
        print(state.global_step, {name: logs[name] for name in wanted if name in logs})


def made(steps):
    torch.manual_seed(0)
    size = {"vocab_size": 50, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=steps,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=20,
        save_steps=20,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    net = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=0, eos_token_id=0))
    data = {"train_dataset": Rows(), "eval_dataset": Rows()}
    trainer = Trainer(net, arguments, **data, callbacks=[Losses()])
    trainer.remove_callback(PrinterCallback)  # which prints times
    return trainer


trainer = made(40)
trainer.train()
trainer = made(60)
trainer.train(resume_from_checkpoint="out/checkpoint-40")
trainer.save_model("saved")
for name in ("out/checkpoint-60/optimizer.pt", "saved/model.safetensors"):
    print(name, hashlib.sha256(open(name, "rb").read()).hexdigest())
print(trainer.model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=8, do_sample=False).tolist())
shutil.rmtree("out")  # its arguments hold times
