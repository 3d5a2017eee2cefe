"""Learn the weights and sigmas of a dense CRF by gradients, with PyTorch, and compare with `dcrf tune`.

    PYTHONPATH=build/python python3 examples/learn_weights.py DATASET [--seconds S] [--command build/dcrf]

DATASET is a folder as docs/reference/formats.md describes it, with splits val and test, and unaries as dataset.json
says. The parameters are learned on the validation images by the cross-entropy of mean field's
tempered probabilities at the true labels, with Adam; then `dcrf tune` looks for them on the same images with the same method
for the same CPU time, and both are scored on the test images, beside kernels of the default sigmas whose strength is
measured picture by picture (`strength="auto"`). All others start at the same point.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import tempfile
import time

import numpy as np
import torch
from PIL import Image

import dcrf
from dcrf import metrics
from dcrf.torch import MeanField

ITERATIONS = 5
START = {"spatial": (3.0, 1.5), "bilateral": (40.0, 13.0, 2.5)}


def read(dataset, split):
    """Logits (labels, H, W), image (3, H, W), truth (H, W) of the images of a split."""
    settings = json.loads((dataset / "dataset.json").read_text())
    scale = settings["unary"].get("energy_per_unit", 1.0)
    for name in (dataset / "splits" / f"{split}.txt").read_text().split():
        unary = np.load(dataset / "unaries" / f"{name}.npy").astype(np.float32) * scale
        image = np.array(Image.open(dataset / "images" / f"{name}.png").convert("RGB"), np.float32)
        truth = np.array(Image.open(dataset / "gt" / f"{name}.png")).astype(np.int64)
        yield (
            torch.from_numpy(np.ascontiguousarray(-np.moveaxis(unary, -1, 0))),
            torch.from_numpy(np.ascontiguousarray(np.moveaxis(image, -1, 0))),
            torch.from_numpy(truth),
        )


def score(solve, items, labels, void):
    """Pixel accuracy and mean IoU over all images together."""
    counts = 0
    with torch.no_grad():
        for logits, image, truth in items:
            counts = counts + metrics.confusion(solve(logits, image), truth.cpu().numpy(), labels, void)
    union = counts.sum(0) + counts.sum(1) - np.diag(counts)
    return np.trace(counts) / counts.sum(), np.mean(np.diag(counts)[union > 0] / union[union > 0])


def learn(layer, items, void, seconds):
    """Adam on single images until the CPU time is spent; sigmas by every fourth round only, since their
    gradients cost a lattice each. Returns rounds and seconds."""
    # Mean field is overconfident; a separate temperature keeps this from pulling the weights down.
    log_temper = torch.nn.Parameter(torch.zeros((), device=items[0][0].device))
    optimizer = torch.optim.Adam([*layer.parameters(), log_temper], lr=0.05)
    start, rounds = time.process_time(), 0
    while time.process_time() - start < seconds:
        with_sigmas = rounds % 4 == 3
        layer.log_sigmas.requires_grad_(with_sigmas)
        for key, (logits, image, truth) in enumerate(items):
            q = layer(logits[None], image[None], keys=[key])
            tempered = torch.log_softmax(torch.exp(log_temper) * torch.log(q.clamp_min(1e-6)), 1)
            loss = torch.nn.functional.nll_loss(tempered, truth[None], ignore_index=void)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.process_time() - start >= seconds:
                break
        rounds += 1
    return rounds, time.process_time() - start


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def tune(command, dataset, seconds, seconds_for_one):
    """`dcrf tune` with as many evaluations as fit; returns (evaluations, seconds, its kernels)."""
    spatial, bilateral = START["spatial"], START["bilateral"]
    budget = max(2, round(seconds / seconds_for_one))
    with tempfile.TemporaryDirectory() as folder:
        before = children_seconds()
        subprocess.run(
            [command, "tune", dataset, "--method", f"mf{ITERATIONS}", "--rounded", "--held-out", "none",
             "--spatial", ",".join(map(str, spatial)), "--bilateral", ",".join(map(str, bilateral)),
             "--objective", "iou", "--budget", str(budget), "--out", folder + "/out"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        spent = children_seconds() - before
        best = json.loads((pathlib.Path(folder) / "out" / "best.json").read_text())["settings"]
    kernels = {name: tuple(map(float, best[name].split(","))) for name in ("spatial", "bilateral")}
    return budget, spent, kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU time, for each")
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"), help="cpu or cuda")
    parser.add_argument("--command", help="the dcrf command, to compare with its tune")
    options = parser.parse_args()
    torch.manual_seed(0)
    settings = json.loads((options.dataset / "dataset.json").read_text())
    labels, void = settings["labels"], settings.get("void", 255)
    val, test = (
        [tuple(one.to(options.device) for one in item) for item in read(options.dataset, split)] for split in ("val", "test")
    )

    def layer_of(kernels, **keywords):
        return MeanField(labels, iterations=ITERATIONS, **kernels, **keywords).to(options.device)

    def automatic(logits, image):
        found = dcrf.mean_field(
            np.moveaxis(image.cpu().numpy(), 0, -1).astype(np.uint8), unary=-logits.cpu().numpy(), iterations=ITERATIONS
        )
        return found.labels

    def report_scores(name, effort, kernels, solve):
        (val_accuracy, val_iou), (accuracy, iou) = (score(solve, items, labels, void) for items in (val, test))
        print(f"| {name} | {effort} | {kernels} | {100 * val_accuracy:.2f} | {100 * val_iou:.2f} | {100 * accuracy:.2f} | "
              f"{100 * iou:.2f} |", flush=True)

    def report(name, layer, effort):
        weights, sigmas = layer.weights.tolist(), layer.sigmas.tolist()
        kernels = f"{sigmas[0]:.2f},{weights[0]:.2f} | {sigmas[1]:.1f},{sigmas[2]:.1f},{weights[1]:.2f}"
        report_scores(name, effort, kernels, lambda logits, image: layer(logits[None], image[None])[0].argmax(0).cpu().numpy())

    print("| | effort | spatial | bilateral | val accuracy | val IoU | test accuracy | test IoU |\n"
          "|---|---|---|---|---|---|---|---|")
    flat = {"spatial": (1.0, 1e-9), "bilateral": (10.0, 10.0, 1e-9)}
    report("unaries alone", layer_of(flat), "")
    report_scores("automatic strength", "", "2 | 40,8", automatic)  # the default sigmas
    report("start", layer_of(START), "")
    learned = layer_of(START, learn=("weights", "sigmas"))
    rounds, spent = learn(learned, val, void, options.seconds)
    learned.forget()
    report("learned by gradients", learned, f"{rounds} rounds, {spent:.0f} s")
    if options.command:
        _, one, _ = tune(options.command, options.dataset, 0, 1)  # two evaluations, to measure the cost of one
        budget, spent, kernels = tune(options.command, options.dataset, options.seconds, one / 2)
        report("dcrf tune", layer_of(kernels), f"{budget} evaluations, {spent:.0f} s")


if __name__ == "__main__":
    main()
