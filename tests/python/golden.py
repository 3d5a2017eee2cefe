"""Recorded outputs of pydensecrf, where they are at hand: shared/data/pydensecrf-golden beside the
repository. Without them the test exits with 77, which counts as skipped."""

import json
import os
import pathlib
import sys

import numpy as np

from dcrf.pydensecrf import densecrf, utils

FOLDER = pathlib.Path(
    os.environ.get("DCRF_SHARED", pathlib.Path(__file__).resolve().parents[3] / "shared")
) / "data" / "pydensecrf-golden"

# The contract: what a probability may differ by. All labels must be the same.
MOST_DIFFERENCE = 5e-5
# A sum over all pixels in single precision there, in double here.
MOST_KL_DIFFERENCE = 1e-4

NORMALIZATIONS = {
    "none": densecrf.NO_NORMALIZATION,
    "before": densecrf.NORMALIZE_BEFORE,
    "after": densecrf.NORMALIZE_AFTER,
    "symmetric": densecrf.NORMALIZE_SYMMETRIC,
}


def as_sigma(value):
    return tuple(value) if isinstance(value, list) else value


def as_compat(value):
    return np.array(value, np.float32) if isinstance(value, list) else value


def crf_2d(case, data, unary, module=densecrf, **keywords):
    crf = module.DenseCRF2D(case["width"], case["height"], case["nlabels"], **keywords)
    crf.setUnaryEnergy(unary)
    for term in case["terms"]:
        normalization = NORMALIZATIONS[term.get("norm", "symmetric")]
        compat = as_compat(term["compat"])
        if term["kind"] == "gaussian":
            crf.addPairwiseGaussian(
                sxy=as_sigma(term["sxy"]), compat=compat, normalization=normalization
            )
        else:
            crf.addPairwiseBilateral(
                sxy=as_sigma(term["sxy"]),
                srgb=as_sigma(term["srgb"]),
                rgbim=data["rgb"],
                compat=compat,
                normalization=normalization,
            )
    return crf


def crf_features(case, data, **keywords):
    image = data["volume"][..., np.newaxis] if "volume" in data else data["rgb"]
    shape = case["shape"] if "shape" in case else image.shape[:2]
    gaussian = utils.create_pairwise_gaussian(case["sdims_gaussian"], shape)
    bilateral = utils.create_pairwise_bilateral(
        case["sdims_bilateral"], case["schan"], image, chdim=case["chdim"]
    )
    np.testing.assert_allclose(gaussian, data["f_gaussian"], rtol=1e-6)
    np.testing.assert_allclose(bilateral, data["f_bilateral"], rtol=1e-6)
    crf = densecrf.DenseCRF(int(np.prod(shape)), case["nlabels"], **keywords)
    crf.setUnaryEnergy(data["unary"])
    crf.addPairwiseEnergy(gaussian, compat=case["compat"][0])
    crf.addPairwiseEnergy(bilateral, compat=case["compat"][1])
    return crf


def run(name, **keywords):
    """What we give for a case, and what the original gave: Q and the divergences."""
    case = json.loads((FOLDER / f"{name}.json").read_text())
    data = dict(np.load(FOLDER / f"{name}.npz"))
    if case["call"] == "DenseCRF+utils":
        crf = crf_features(case, data, **keywords)
    else:
        unary = data["unary"]
        if case["call"].startswith("unary_from_labels"):
            ours = utils.unary_from_labels(
                data["labels"], case["nlabels"], case["gt_prob"], case["zero_unsure"]
            )
            np.testing.assert_allclose(ours, unary, rtol=1e-6)
        crf = crf_2d(case, data, unary, **keywords)
    divergences = []
    if case.get("stepwise"):
        Q, tmp1, tmp2 = crf.startInference()
        for _ in range(case["iterations"]):
            crf.stepInference(Q, tmp1, tmp2)
            divergences.append(crf.klDivergence(Q))
    else:
        Q = crf.inference(case["iterations"])
    return Q, data["Q"], np.array(divergences), data.get("kl")


def compare(name, **keywords):
    ours, theirs, kl, their_kl = run(name, **keywords)
    difference = np.abs(ours - theirs).max()
    labels = int((ours.argmax(0) != theirs.argmax(0)).sum())
    good = difference <= MOST_DIFFERENCE and labels == 0
    text = f"max |dQ| {difference:.2e}, {labels} labels differ"
    if their_kl is not None:
        relative = np.abs(kl / their_kl - 1).max()
        good = good and len(kl) == len(their_kl) and relative <= MOST_KL_DIFFERENCE
        text += f", divergence {relative:.1e}"
    print(f"{'ok    ' if good else 'FAILED'} {name} {keywords or ''}: {text}")
    return good


def compare_softmax():
    data = np.load(FOLDER / "utils_softmax.npz")
    calls = {"u_default": {}, "u_scale": {"scale": 0.8}, "u_clip": {"clip": 1e-2}}
    names = [name for name in data.files if name != "sm"]
    if len(names) != len(calls):
        print(f"FAILED utils_softmax: {data.files}")
        return False
    good = all(
        np.allclose(utils.unary_from_softmax(data["sm"], **arguments), data[name], rtol=1e-6, atol=1e-6)
        for name, arguments in zip(names, calls.values())
    )
    print(f"{'ok    ' if good else 'FAILED'} utils_softmax")
    return good


def main():
    if not FOLDER.is_dir():
        print(f"skipped: there is no {FOLDER}")
        return 77
    names = sorted(path.stem for path in FOLDER.glob("*.npz"))
    results = [compare_softmax()]
    for name in names:
        if name != "utils_softmax":
            # With labels left out, and without.
            results += [compare(name), compare(name, message_error=0)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
