"""A model of transformers in a loop of accelerate, in bfloat16, with a scheduler and clipping."""
# needs: transformers accelerate

import os

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from accelerate import Accelerator
from transformers import BertConfig, BertForSequenceClassification, get_scheduler, set_seed

set_seed(0)
size = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
net = BertForSequenceClassification(BertConfig(**size, intermediate_size=32))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scheduler = get_scheduler("linear", optimizer, num_warmup_steps=5, num_training_steps=120)
rows = [{"input_ids": torch.arange(8) + i % 40, "labels": torch.tensor(i % 2)} for i in range(96)]
loader = torch.utils.data.DataLoader(rows, batch_size=4, shuffle=True)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision="bf16")
net, optimizer, loader, scheduler = accelerator.prepare(net, optimizer, loader, scheduler)
for epoch in range(6):
    for batch in loader:
        with accelerator.accumulate(net):
            loss = net(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    print(epoch, loss.item(), scheduler.get_last_lr())
accelerator.save_state("state")
