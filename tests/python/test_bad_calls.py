"""Random calls with wrong shapes, types and numbers: a result, or an exception with a message; never
a crash, and no leak. `test_bad_calls.py COUNT` makes COUNT calls (2,000 in the tests, 10,000 under
the address sanitizer: script/check-python)."""

import resource
import sys

import numpy as np

import dcrf
from dcrf.pydensecrf import densecrf, utils

# What a caller may rightly get. Anything else (SystemError, AssertionError, ...) is a fault of ours.
EXPECTED = (ValueError, TypeError, MemoryError, OverflowError, NotImplementedError, RuntimeError)


class Maker:
    """Numbers and arrays, most of them wrong."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def pick(self, *values):
        return values[self.rng.integers(len(values))]

    def often(self, right, *wrong):
        return right if self.rng.random() < 0.7 else self.pick(*wrong)

    def number(self, right=3):
        return self.often(right, 0, -1, np.nan, np.inf, -np.inf, 1e-30, 1e-300, 1e30, 1e300, 2**40,
                          None, "3", 1j, [], (3, 4), (3, 4, 5, 6), np.float32(2), True)

    def count(self, right):
        return self.often(right, 0, -1, 1, 2.5, 2**31, 2**62, 2**70, None, "x", np.int64(3), True)

    def shape(self, *right):
        right = list(right)
        kind = self.rng.integers(8)
        if kind == 0 and right:
            right[self.rng.integers(len(right))] = 0
        elif kind == 1 and right:
            right[self.rng.integers(len(right))] += 1
        elif kind == 2:
            right.reverse()
        elif kind == 3:
            right.insert(0, 1)
        elif kind == 4 and right:
            right.pop()
        return right

    def array(self, *right):
        shape = self.shape(*right)
        if self.rng.random() < 0.05:
            return self.pick(None, "array", 5, [[1, 2], [3]], {}, object(), b"bytes", [], np.array(["a"]))
        values = self.rng.normal(0, 3, shape)
        if values.size and self.rng.random() < 0.2:
            values.ravel()[self.rng.integers(values.size)] = self.pick(np.nan, np.inf, -np.inf, 1e38,
                                                                      1e300, -1e300)
        with np.errstate(all="ignore"):
            values = values.astype(self.pick("f4", "f4", "f8", "u1", "i2", "u2", "i4", "i8", "f2", ">f4",
                                             "?", "c8", "O", "g"))
        change = self.rng.integers(6)
        if change == 0:
            values = np.asfortranarray(values)
        elif change == 1 and values.ndim:
            values = values[::-1]
        elif change == 2:
            values.flags.writeable = False
        return values


def drop_in(make):
    height, width, labels = (int(make.rng.integers(1, 8)) for _ in range(3))
    if make.rng.random() < 0.5:
        crf = densecrf.DenseCRF2D(make.count(width), make.count(height), make.count(labels))
    else:
        crf = densecrf.DenseCRF(make.count(width * height), make.count(labels))
    n = width * height
    compat = lambda: make.often(3, make.number(), make.array(labels), make.array(labels, labels))
    for _ in range(make.rng.integers(1, 6)):
        kind = make.rng.integers(8)
        if kind == 0:
            crf.setUnaryEnergy(make.array(labels, n))
        elif kind == 1:
            crf.addPairwiseEnergy(make.array(make.rng.integers(0, 20), n), compat(),
                                  normalization=make.often(3, 0, 1, 2, 4, None))
        elif kind == 2 and isinstance(crf, densecrf.DenseCRF2D):
            crf.addPairwiseGaussian(make.number(), compat(), make.often(1, 0, 2, 7),
                                    make.often(3, 0, 1, 2, 4, -1))
        elif kind == 3 and isinstance(crf, densecrf.DenseCRF2D):
            crf.addPairwiseBilateral(make.number(), make.number(), make.array(height, width, 3), compat())
        elif kind == 4:
            crf.inference(make.often(2, 0, -1, 1.5, None, "2"))
        elif kind == 5:
            q, a, b = crf.startInference()
            crf.stepInference(make.often(q, make.array(labels, n), None), a, b)
        elif kind == 6:
            crf.klDivergence(make.often(crf.inference(1), make.array(labels, n)))
        else:
            crf.inference(1)


def helpers(make):
    kind = make.rng.integers(4)
    if kind == 0:
        utils.unary_from_softmax(make.array(3, 4, 5), make.often(None, make.number()),
                                 make.often(1e-5, None, -1, 2))
    elif kind == 1:
        utils.unary_from_labels(make.array(4, 5), make.count(3), make.often(0.7, 0, 1, -1, np.nan))
    elif kind == 2:
        utils.create_pairwise_gaussian(make.number(), make.shape(4, 5))
    else:
        utils.create_pairwise_bilateral(make.number(), make.number(), make.array(4, 5, 3),
                                        make.often(2, -1, 0, 5, None))


def package(make):
    height, width, labels = (int(make.rng.integers(1, 8)) for _ in range(3))
    model = dcrf.Model(
        make.often(make.array(height, width, 3), None),
        spatial=make.often((make.number(), make.number(1)), None, 3, "x", (1,)),
        bilateral=make.often((make.number(20), make.number(10), make.number(1)), None, 5),
        normalize=make.often("symmetric", "none", "both", None),
        spacing=make.often(1.0, make.number()),
        operator=make.often("fast", "exact", "grid", "lattice", "magic"),
        threads=make.often(1, make.count(2)) if make.rng.random() < 0.3 else 1,
        **{make.pick("unary", "probabilities", "logits"): make.array(height, width, labels)},
    )
    for _ in range(make.rng.integers(1, 4)):
        kind = make.rng.integers(9)
        if kind == 0:
            model.set_weight(make.count(0), make.number())
        elif kind == 1:
            model.set_compatibility(make.count(0), make.often(make.array(labels, labels), None))
        elif kind == 2:
            model.set_cliques(make.often(make.array(height, width), "slic", "meanshift", "x"),
                              make.number())
        elif kind == 3:
            model.energy(make.array(height, width))
        elif kind == 4:
            model.add_features(make.array(height, width, 4), make.number(1))
        elif kind == 5:
            model.set_unary(make.array(height, width, labels))
        elif kind == 6:
            dcrf.superpixels(make.array(height, width, 3), make.pick("slic", "meanshift", "y"),
                             region_size=make.number())
        elif kind == 7:
            dcrf.metrics.mean_iou(make.array(height, width), make.array(height, width))
        else:
            model.solve(make.pick("mf", "qp", "mf", "x"), iterations=make.often(2, 0, -1, 2.5, 10**30),
                        start=make.often(None, make.array(height, width)),
                        time_limit_s=make.often(None, 0, -1, np.nan))


def arrays(make):
    height, width, labels = (int(make.rng.integers(1, 8)) for _ in range(3))
    dcrf.mean_field(
        make.often(make.array(height, width, 3), None),
        spatial=make.often((make.number(), make.number(1)), None, 3, "x", (1,)),
        bilateral=make.often((make.number(20), make.number(10), make.number(1)), None, 5),
        strength=make.often("auto", make.number(5)),
        spatial_share=make.often(0.5, make.number(1)),
        spacing=make.often(1.0, make.number()),
        operator=make.often("fast", "exact", "grid", "lattice", "magic"),
        iterations=make.often(2, 0, -1, 2.5, 10**30, None),
        labels_axis=make.often(-1, 0, 1, None),
        marginals=make.often(True, False),
        labels=make.often(True, False),
        stream=make.often(None, 1, "x", 1.5) if make.rng.random() < 0.1 else None,
        threads=1,
        device="cpu",
        **{make.pick("unary", "probabilities", "logits"): make.array(height, width, labels)},
    )


def main(count):
    outcomes = {}
    silent = 0
    baseline = None
    for seed in range(count):
        make = Maker(seed)
        call = (drop_in, package, helpers, arrays)[int(make.rng.choice(4, p=(0.4, 0.35, 0.1, 0.15)))]
        try:
            with np.errstate(all="ignore"):
                call(make)
            outcome = "result"
        except EXPECTED as error:
            outcome = type(error).__name__
            silent += not str(error)
        except Exception as error:
            print(f"seed {seed}: {type(error).__name__}: {error}")
            raise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if seed == count // 2:
            baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - (baseline or 0)
    print(f"{count} calls: {outcomes}; {silent} without a message; grown by {grown} kB in the second half")
    # A leak of one array per call would be tens of megabytes.
    return 1 if silent or outcomes.get("result", 0) == 0 or grown > 50_000 else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
