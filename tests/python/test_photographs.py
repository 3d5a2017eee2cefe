"""The drop-in on photographs, with the settings that people publish, against tests/oracle/naive_densecrf.c;
and that oracle against the recordings of the original. Both lie in shared/data beside the repository;
without them the test exits with 77, which counts as skipped.

    test_photographs.py [--all]     all pictures with all settings and 21 labels too (minutes)
"""

import json
import sys

import numpy as np

import golden
import naive
from dcrf.pydensecrf import densecrf, utils

DATA = golden.FOLDER.parent
# A probability may differ by this; it is what the sums of single precision leave in ten updates with
# weights of 10. No label may differ.
MOST_DIFFERENCE = 5e-5

# iterations, spatial (sigma, compat), bilateral (sigma, colour sigma, compat)
SETTINGS = {
    "readme": (10, (3, 3), (80, 13, 10)),
    "weakly supervised": (10, (3, 3), (50, 5, 10)),
    "deeplab": (10, (1, 3), (67, 3, 4)),
    "another family": (10, (1, 1), (121, 5, 4)),
    "saliency": (1, (3, 3), (60, 5, 5)),
    "microscopy": (5, (1, 5), (10, 5, 10)),
    "fractions": (5, ((1.7, 2.3), 3), ((33.3, 41.7), (5.1, 7.3, 11.9), 7)),
}
VOC = ("2007_000129", "2007_000346", "2007_001288")
MSRC = ("photo1", "photo2")


def picture(path):
    from PIL import Image

    return np.array(Image.open(path))


def network(truth, labels):
    """Probabilities as a network with a stride of 8 gives them for these labels."""
    rng = np.random.default_rng(int(truth.sum()))
    height, width = truth.shape
    coarse = truth[4::8, 4::8]
    scores = 4.0 * (coarse[None] == np.arange(labels)[:, None, None])
    scores += rng.normal(0, 1, scores.shape)
    y = np.clip((np.arange(height) - 4) / 8, 0, coarse.shape[0] - 1.001)
    x = np.clip((np.arange(width) - 4) / 8, 0, coarse.shape[1] - 1.001)
    i, j = y.astype(int), x.astype(int)
    fy, fx = (y - i)[:, None], (x - j)[None]
    scores = (scores[:, i] * (1 - fy) + scores[:, i + 1] * fy)
    scores = (scores[:, :, j] * (1 - fx) + scores[:, :, j + 1] * fx)
    scores = np.exp(scores - scores.max(0))
    return (scores / scores.sum(0)).astype(np.float32)


def run(module, image, unary, setting):
    iterations, spatial, bilateral = SETTINGS[setting]
    height, width = image.shape[:2]
    crf = module.DenseCRF2D(width, height, len(unary))
    crf.setUnaryEnergy(unary)
    crf.addPairwiseGaussian(spatial[0], spatial[1])
    crf.addPairwiseBilateral(bilateral[0], bilateral[1], image, bilateral[2])
    return np.array(crf.inference(iterations))


def report(name, ours, theirs):
    difference = np.abs(ours - theirs).max()
    labels = int((ours.argmax(0) != theirs.argmax(0)).sum())
    good = difference <= MOST_DIFFERENCE and labels == 0
    print(f"{'ok    ' if good else 'FAILED'} {name}: max |dQ| {difference:.1e}, {labels} labels differ",
          flush=True)
    return good


def compare(name, image, unary, setting):
    theirs = run(naive, image, unary, setting)
    return report(f"{name}, {len(unary)} labels, {setting}", run(densecrf, image, unary, setting), theirs)


def compare_recordings():
    """The oracle is what it says."""
    results = []
    for path in sorted(golden.FOLDER.glob("*.json")):
        case = json.loads(path.read_text())
        if "terms" not in case or case.get("stepwise"):
            continue
        data = dict(np.load(path.with_suffix(".npz")))
        crf = golden.crf_2d(case, data, data["unary"], module=naive)
        results.append(report(f"the oracle on {path.stem}", crf.inference(case["iterations"]), data["Q"]))
    return results


def main():
    try:
        import PIL  # noqa: F401
    except ImportError:
        print("skipped: there is no PIL")
        return 77
    if not naive.available() or not (DATA / "voc").is_dir():
        print("skipped: there is no oracle, or no photographs")
        return 77
    everything = "--all" in sys.argv
    results = compare_recordings()
    for index, name in enumerate(VOC):
        image = picture(DATA / "voc" / f"{name}.png")
        truth = picture(DATA / "voc" / f"{name}_gt.png")
        present = np.searchsorted(np.unique(truth[truth < 255]), np.where(truth < 255, truth, 0))
        few = utils.unary_from_softmax(network(present, present.max() + 1))
        for place, setting in enumerate(SETTINGS):
            if everything or place % 3 == index:
                results.append(compare(name, image, few, setting))
        if everything or index == 0:
            many = utils.unary_from_softmax(network(truth, 21))
            for setting in SETTINGS if everything else ("deeplab",):
                results.append(compare(name, image, many, setting))
    for name in MSRC if everything else MSRC[:1]:
        image = picture(DATA / "msrc-example" / f"{name}.png")
        energies = np.load(DATA / "msrc-example" / f"{name}_energy.npy").astype(np.float32)
        unary = np.moveaxis(energies, -1, 0).reshape(energies.shape[-1], -1)
        for setting in SETTINGS if everything else ("readme",):
            results.append(compare(name, image, unary, setting))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
