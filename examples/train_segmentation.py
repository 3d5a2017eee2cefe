"""Train a small network from scratch, with and without a dense CRF, on a folder of pictures.

    PYTHONPATH=build/python python3 examples/train_segmentation.py DATASET --way WAY [--labelled 0.01] [--seeds 0 1 2] >> results
    PYTHONPATH=build/python python3 examples/train_segmentation.py --table results

DATASET has images/NAME.png, gt/NAME.png with labels, and dataset.json with "labels" and "void" (docs/datasets.md). All pictures are dealt
into folds; each fold is predicted by a network that was trained on the others, so that every picture is tested once, and the mean
IoU is that of all pictures together. A WAY is

    cross-entropy   of the network's own answer at the labelled pixels
    loss            the same, plus --factor times CRFLoss of its probabilities at all pixels
    layer           of mean field's answer: MeanField is the network's last layer, its weights and sigmas are learned

With --labelled below 1 only so many of the pixels of training pictures, drawn once, have a label.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from dcrf import metrics
from dcrf.torch import CRFLoss, MeanField

CROP = 96


def read(dataset):
    """Pictures (3, H, W), 0 to 255, and labels (H, W)."""
    items = []
    for path in sorted((dataset / "images").glob("*.png")):
        image = np.array(Image.open(path).convert("RGB"), np.float32)
        truth = np.array(Image.open(dataset / "gt" / path.name)).astype(np.int64)
        items.append((torch.from_numpy(np.moveaxis(image, -1, 0).copy()), torch.from_numpy(truth)))
    return items


def block(inside, outside):
    return torch.nn.Sequential(
        torch.nn.Conv2d(inside, outside, 3, padding=1), torch.nn.BatchNorm2d(outside), torch.nn.ReLU(),
        torch.nn.Conv2d(outside, outside, 3, padding=1), torch.nn.BatchNorm2d(outside), torch.nn.ReLU(),
    )


class Network(torch.nn.Module):
    """A U-net of four scales."""

    def __init__(self, labels, width=24):
        super().__init__()
        widths = [width, 2 * width, 3 * width, 4 * width]
        self.down = torch.nn.ModuleList([block(a, b) for a, b in zip([3] + widths, widths)])
        self.up = torch.nn.ModuleList([block(a + b, a) for a, b in zip(widths, widths[1:])])
        self.last = torch.nn.Conv2d(width, labels, 1)

    def forward(self, image):
        x, seen = (image - 127) / 64, []
        for index, one in enumerate(self.down):
            x = one(F.avg_pool2d(x, 2, ceil_mode=True) if index else x)
            seen.append(x)
        for one, fine in zip(reversed(self.up), reversed(seen[:-1])):
            x = one(torch.cat([fine, F.interpolate(x, size=fine.shape[2:], mode="bilinear")], 1))
        return self.last(x)


class Way(torch.nn.Module):
    """A network with what stands on it."""

    def __init__(self, options, labels):
        super().__init__()
        self.network = Network(labels)
        self.factor = options.factor
        self.layer = self.loss = None
        if options.way == "layer":
            self.layer = MeanField(
                labels, spatial=(2, 0.3), bilateral=(20, 13, 0.3), learn=("weights", "sigmas"), output="log_probabilities"
            )
        if options.way == "loss":
            self.loss = CRFLoss(labels, bilateral=(20, 13, 1))

    def forward(self, image):
        logits = self.network(image)
        return F.log_softmax(logits, 1) if self.layer is None else self.layer(logits, image)

    def cost(self, image, truth, void):
        log_q = self(image)
        cost = F.nll_loss(log_q, truth, ignore_index=void)
        return cost if self.loss is None else cost + self.factor * self.loss(log_q.exp(), image)


def hide(truth, part, void, generator):
    """Labels at a part of the pixels."""
    return truth if part >= 1 else torch.where(torch.rand(truth.shape, generator=generator) < part, truth, void)


def batches(items, options, void, generator):
    """Random crops, some of them mirrored."""
    for _ in range(options.steps):
        images, truths = [], []
        for index in torch.randint(len(items), (options.batch,), generator=generator).tolist():
            image, truth = items[index]
            image = F.pad(image, (0, max(0, CROP - image.shape[2]), 0, max(0, CROP - image.shape[1])))
            truth = F.pad(truth, (0, image.shape[2] - truth.shape[1], 0, image.shape[1] - truth.shape[0]), value=void)
            top, left = (int(torch.randint(size - CROP + 1, (), generator=generator)) for size in truth.shape)
            step = -1 if torch.rand((), generator=generator) < 0.5 else 1
            cut = slice(top, top + CROP), slice(left, left + CROP)
            images.append(image[:, cut[0], cut[1]].flip(2) if step < 0 else image[:, cut[0], cut[1]])
            truths.append(truth[cut].flip(1) if step < 0 else truth[cut])
        yield torch.stack(images), torch.stack(truths)


def train(way, items, options, void, generator):
    """Seconds of a step, the first ones left out."""
    crf = [] if way.layer is None else list(way.layer.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": way.network.parameters()}, {"params": crf, "lr": 10 * options.rate, "weight_decay": 0}],
        lr=options.rate, weight_decay=1e-3,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [options.rate, 10 * options.rate], total_steps=options.steps)
    start, counted = None, 0
    for number, (image, truth) in enumerate(batches(items, options, void, generator)):
        if number == min(10, options.steps - 1):
            if options.device.type == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
        optimizer.zero_grad()
        way.cost(image, truth, void).backward()
        optimizer.step()
        schedule.step()
        counted += start is not None
    if options.device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / max(1, counted)


def evaluate(way, items, labels, void, device):
    way.eval()
    counts = 0
    with torch.no_grad():
        for image, truth in items:
            found = way(image[None].to(device))[0].argmax(0).cpu().numpy()
            counts = counts + metrics.confusion(found, truth.numpy(), labels, void)
    return counts


def run(options, seed):
    settings = json.loads((options.dataset / "dataset.json").read_text())
    labels, void = settings["labels"], settings.get("void", 255)
    items = read(options.dataset)
    order = torch.randperm(len(items), generator=torch.Generator().manual_seed(1000)).tolist()  # the same folds for every seed
    counts, seconds = 0, []
    for fold in range(options.folds):
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(100 * seed + fold)
        held = set(order[fold :: options.folds])
        kept = [
            (image.to(options.device), hide(truth, options.labelled, void, generator).to(options.device))
            for at, (image, truth) in enumerate(items) if at not in held
        ]
        way = Way(options, labels).to(options.device).train()
        seconds.append(train(way, kept, options, void, generator))
        counts = counts + evaluate(way, [items[at] for at in sorted(held)], labels, void, options.device)
    union = counts.sum(0) + counts.sum(1) - np.diag(counts)
    print(json.dumps({
        "dataset": options.dataset.name, "labelled": options.labelled, "way": options.way,
        "factor": options.factor if options.way == "loss" else None, "seed": seed,
        "accuracy": float(np.trace(counts) / counts.sum()),
        "iou": float(np.mean(np.diag(counts)[union > 0] / union[union > 0])), "step_s": statistics.median(seconds),
    }), flush=True)


def table(path):
    """Means and deviations over the seeds."""
    rows = {}
    for line in path.read_text().splitlines():
        one = json.loads(line)
        name = one["way"] + (f", factor {one['factor']:g}" if one["factor"] is not None else "")
        rows.setdefault((one["dataset"], -one["labelled"], name), []).append(one)
    print("| pictures | labelled pixels | way | mean IoU, % | accuracy, % | seeds | ms a step |\n|---|---|---|---|---|---|---|")
    for (dataset, labelled, name), found in sorted(rows.items()):
        def spread(key):
            values = [100 * one[key] for one in found]
            return f"{statistics.mean(values):.1f} ± {statistics.stdev(values) if len(values) > 1 else 0:.1f}"

        step = statistics.median(one["step_s"] for one in found)
        print(f"| {dataset} | {-100 * labelled:g} % | {name} | {spread('iou')} | {spread('accuracy')} | {len(found)} | {1000 * step:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=pathlib.Path, nargs="?")
    parser.add_argument("--way", choices=["cross-entropy", "loss", "layer"], default="cross-entropy")
    parser.add_argument("--labelled", type=float, default=1.0, help="the part of the pixels of training pictures that has labels")
    parser.add_argument("--factor", type=float, default=0.3, help="of CRFLoss")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    parser.add_argument("--table", type=pathlib.Path, help="make a table of results")
    options = parser.parse_args()
    if options.table:
        table(options.table)
        return
    if options.dataset is None:
        sys.exit("give a folder of pictures, or --table")
    if options.folds < 2:
        sys.exit("at least two folds are needed: one is tested while the others are trained on")
    for seed in options.seeds:
        run(options, seed)


if __name__ == "__main__":
    main()
