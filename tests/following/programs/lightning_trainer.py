"""Lightning's Trainer: training, validation, checkpoints, a scheduler, two optimizers by hand."""
# needs: lightning

import logging
import warnings

warnings.filterwarnings("ignore")
import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from tiny import model

for name in ("lightning.pytorch", "lightning.pytorch.utilities.rank_zero"):
    logging.getLogger(name).setLevel(logging.ERROR)

class Automatic(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = model()

    def training_step(self, batch, index):
        loss = self.net(batch).square().mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("value", self.net(batch).abs().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    def on_train_epoch_end(self):
        print(self.current_epoch, {k: v.item() for k, v in self.trainer.callback_metrics.items()})


class ByHand(Automatic):
    automatic_optimization = False

    def training_step(self, batch, index):
        for optimizer in self.optimizers():
            optimizer.zero_grad()
            self.manual_backward(self.net(batch).square().mean())
            optimizer.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(self.parameters(), lr=1e-3), torch.optim.Adam(self.parameters())]


seed_everything(0, verbose=False)
rows = torch.utils.data.DataLoader(torch.randn(400, 8), batch_size=8)
for kind in (Automatic, ByHand):
    trainer = Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ModelCheckpoint(dirpath=kind.__name__), EarlyStopping("value", patience=50)],
    )
    net = kind()
    trainer.fit(net, rows, rows)
    print(trainer.global_step, sum(p.double().sum().item() for p in net.parameters()))
