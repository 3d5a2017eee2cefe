#!/usr/bin/env python3
"""Check a certificate of `dcrf solve --operator exact --certificate FILE` with numpy alone.

    check_certificate.py [--distance MATRIX.npy] UNARY.npy CERTIFICATE KERNEL...

UNARY.npy holds energies (height, width, labels). For every kernel, in their order, KERNEL is `-` for
a spatial one, or the image of a bilateral one as .npy (height, width, channels). All pairs of pixels
are held in memory, so a few thousand pixels are the limit. MATRIX.npy is the distance between labels, of all kernels; without
it the model is Potts. docs/reference/certificate.md says what is checked.

Nothing that the file says is believed. What it says about the model is printed: look whether that is
the model you mean. Comparisons are written so that a NaN never passes.
"""
import hashlib
import struct
import sys

import numpy as np

NODES, STEPS = 14, 16  # the values in rounds go from 0 to 208
MOST_ROUNDS, MOST_POINTS, MOST_LEVELS = 4096, 32, 2**24 - 1  # points: of all mixtures together
ELIMINATIONS = 16  # at most, in a row
FEW = 2.0**-50  # relative error of a few roundings to double
MOST_CUTS = 4096
SLACK = 2.0**-39  # relative, for sums of lengths
FLOAT_MAX = float(np.finfo(np.float32).max)  # of weights and lengths: no sum of them overflows


def refuse(why):
    sys.exit(f"refused: {why}")


def need(condition, why):
    if not condition:
        refuse(why)


# ---- the bytes ------------------------------------------------------------------------------------


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, count):
        need(count <= len(self.data) - self.at, "it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def take(self, form):
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def varint(self):
        value = 0
        for shift in range(0, 64, 7):
            (byte,) = self.bytes(1)
            value |= (byte & 127) << shift
            if byte < 128 and value < 2**64:
                return value
        refuse("a number is too long")

    def packed(self, count, most):
        """Differences to the number before; a zero is followed by how many more there are."""
        values, previous = [], 0
        while len(values) < count:
            token, run = self.varint(), 1
            if token == 0:
                run += self.varint()
            previous += -(token // 2 + 1) if token % 2 else token // 2
            need(0 <= previous <= most and run <= count - len(values), "a number is out of range")
            values += [previous] * run
        return np.array(values, dtype=int)

    def cuts(self, labels, rounds):
        """Lengths, and a row of zeros and ones for each cut."""
        (count,) = self.take("I")
        need(count <= MOST_CUTS and rounds == 0, "it has too many cuts, or rounds besides")
        lengths, sets = np.zeros(count), np.zeros((count, labels))
        for c in range(count):
            (lengths[c],) = self.take("d")
            bits = np.frombuffer(self.bytes((labels + 7) // 8), np.uint8)
            sets[c] = np.unpackbits(bits, bitorder="little")[:labels]
        need((lengths >= 0).all() and (lengths <= FLOAT_MAX).all(), "the length of a cut is out of range")
        return lengths, sets

    def planes(self, count, labels, size, most):
        """A matrix (size, labels); labels without a plane are zero."""
        need(count <= labels, "there are too many planes")
        which = self.take(f"{count}H")
        need(len(set(which)) == count and all(i < labels for i in which), "a label is out of range")
        values = np.zeros((size, labels), int)
        for label in which:
            values[:, label] = self.packed(size, most)
        return values


def is_width(epsilon):
    return 2.0**-1022 <= epsilon <= 1


def read_certificate(path, shape, kernel_count):
    with open(path, "rb") as file:
        data = file.read()
    need(data[:8] == b"DCRFCERT" and hashlib.sha256(data[:-32]).digest() == data[-32:], "this is no whole certificate")
    f, c = Reader(data[8:-32]), {}
    version, exact, n, labels, kernels, cliques, rounds, c["proven"], mixtures = f.take("II7Q")
    need(version in (2, 3) and exact == 1 and cliques == 0, "only the exact operator without cliques is checked here")
    need((n, labels, kernels) == (shape[0] * shape[1], shape[2], kernel_count), "it is about another size, or another number of kernels")
    need(rounds <= MOST_ROUNDS and mixtures <= MOST_POINTS, "it has too many rounds or mixtures")
    c["energy"], c["bound"], c["unary"], no_cliques = f.take("dd32s32s")
    need(no_cliques == hashlib.sha256().digest(), "it has cliques")
    c["kernels"] = []
    for _ in range(kernels):
        weight, normalization, dimension, digest, matrix = f.take("dII32s32s")
        factor = np.array(f.take(f"{min(dimension, 64)}d"))
        need(0 <= weight <= FLOAT_MAX and normalization in (0, 1) and matrix == bytes(32), "a kernel is out of range")
        need(np.isfinite(factor).all() and (factor > 0).all(), "a sigma is out of range")
        c["kernels"].append((weight, normalization, digest, factor))
    c["cuts"] = f.cuts(labels, rounds) if version == 3 else None
    c["epsilon"] = f.take(f"{rounds}d")
    need(all(is_width(e) for e in c["epsilon"]), "a width is not between 0 and 1")
    c["x"], c["round"] = f.packed(n, labels - 1), f.packed(n, rounds)
    need(np.isin(np.arange(1, rounds + 1), c["round"]).all(), "a round is empty")
    c["values"] = f.planes(f.take("Q")[0], labels, n, STEPS * (NODES - 1))
    c["mixtures"] = []
    for _ in range(mixtures):
        after, points, shares = f.take("III")
        need(after <= rounds and 1 <= points and shares == 0, "a mixture is out of range")
        need(points + sum(len(drawn) for _, drawn in c["mixtures"]) <= MOST_POINTS, "it has too many dual points")
        need(not c["mixtures"] or after >= c["mixtures"][-1][0], "mixtures are out of order")
        c["mixtures"].append((after, []))
        size = np.count_nonzero((c["round"] == 0) | (c["round"] > after))
        need(size > 0, "a mixture is about no pixel")
        for _ in range(points):
            weight, epsilon, nodes, levels, count = f.take("ddIII")
            need(0 <= weight <= 1 and is_width(epsilon), "a point is out of range")
            need(nodes != 1 and nodes <= 256 and 1 <= levels <= MOST_LEVELS, "a point is out of range")
            c["mixtures"][-1][1].append((weight, epsilon, nodes, levels, f.planes(count, labels, size, levels)))
    need(f.at == len(f.data), "its length is wrong")
    return c


# ---- the model ------------------------------------------------------------------------------------


def kernel_matrix(certificate, shape, images):
    """K, every kernel with its weight, the diagonal zero."""
    total = np.zeros((shape[0] * shape[1],) * 2)
    y, x = np.mgrid[: shape[0], : shape[1]]
    for (weight, normalization, digest, factor), image in zip(certificate["kernels"], images):
        features = np.stack([x, y], -1).reshape(-1, 2).astype("<f8")
        if image is not None:
            need(image.shape[:2] == shape[:2], "the image has another size")
            features = np.hstack([features, image.reshape(len(features), -1)]).astype("<f8")
        need(features.shape[1] == len(factor), "a kernel has another number of features")
        need(hashlib.sha256(np.ascontiguousarray(features).tobytes()).digest() == digest, "the image is another one")
        scaled = features * factor
        squared = sum((scaled[:, None, i] - scaled[None, :, i]) ** 2 for i in range(len(factor)))
        k = np.exp(-0.5 * squared)
        if normalization:
            k /= np.sqrt(np.outer(k.sum(1), k.sum(1)))
        total += weight * k
        print(f"kernel: weight {weight:.12g}, sigmas {', '.join(f'{1 / v:.12g}' for v in factor)}, {'symmetric' if normalization else 'no'} normalization")
    np.fill_diagonal(total, 0)
    need(np.isfinite(total).all(), "the kernels are not finite")
    return total


# ---- the rules ------------------------------------------------------------------------------------


def line(difference, epsilon):
    return np.clip(difference / epsilon, -1, 1)


def hats(values, levels, nodes):
    """How much of each value is at each node."""
    at = np.asarray(values, float)[:, None] * (nodes - 1) / levels
    return np.maximum(0, 1 - np.abs(at - np.arange(nodes)))


def pair_sums(k, values, epsilon, nodes, levels):
    """sum_b K_ab F(v_ai, v_bi) of all a and i."""
    out = np.zeros(values.shape)
    for i in range(values.shape[1]):
        if nodes == 0:
            v = values[:, i].astype(float)
            out[:, i] = (k * line((v[None] - v[:, None]) / levels, epsilon)).sum(1)
        else:
            at, steps = hats(values[:, i], levels, nodes), np.arange(nodes) / (nodes - 1)
            out[:, i] = ((k @ at) @ line(steps[None] - steps[:, None], epsilon).T * at).sum(1)
    return out


def check_cuts(cuts, distance):
    """Do the cuts between two labels add up to no more than their distance?"""
    need((cuts is None) == (distance is None), "it is about another kind of distance between labels")
    if cuts is None:
        return
    lengths, sets = cuts
    for i in range(len(distance)):
        sums = lengths @ (sets != sets[:, i : i + 1])
        need((sums <= distance[i] * (1 + SLACK)).all(), "its cuts are longer than the distance between two labels")


def cut_sums(k, cuts, values, epsilon, nodes, levels):
    """The same with cuts: their values are sums of those of their labels."""
    lengths, sets = cuts
    columns = np.minimum(values @ sets.T.astype(int), levels)
    return pair_sums(k, columns, epsilon, nodes, levels) * (2 * lengths * (1 - 2 * SLACK)) @ sets


class Check:
    def __init__(self, c, unary, k, distance=None):
        self.c, self.unary, self.k, self.cuts = c, unary, k, c.get("cuts")
        n, labels = unary.shape
        check_cuts(self.cuts, distance)
        self.distance = 1 - np.eye(labels) if distance is None else distance
        self.possible, self.undecided = np.ones((n, labels), bool), np.ones(n, bool)
        self.taken = np.zeros((n, labels))  # sum of K_ab over decided b with label i
        self.excess = np.inf
        # Bounds the error of a unary minus sums of K_ab times at most 2, after any number of rounds.
        self.sum_error = 4 * ((n + 64) * 2.0**-52 + 1e-12) * k.sum(1)
        if self.cuts:
            lengths = self.cuts[0]
            self.sum_error *= 4 * max(1 + 2 * lengths.sum(), np.abs(distance).max()) * (1 + len(lengths) / 64)
        self.error = FEW * np.abs(unary) + self.sum_error[:, None]
        self.own = np.arange(labels) == c["x"][:, None]

    def eliminate(self):
        """Labels that are worse than another one whatever the undecided others do; for Potts."""
        if self.cuts:
            return
        cost = self.unary - 2 * self.taken
        worst = 2 * self.k @ (self.possible & self.undecided[:, None])
        best = (cost + self.error).min(1, keepdims=True)
        dead = cost - self.error - best > worst * (1 + FEW) + self.sum_error[:, None]
        self.possible &= ~(dead & self.undecided[:, None])

    def holds(self, members, epsilon):
        """Does every optimal labelling have x on the members?"""
        if not self.possible[self.own][members].all():
            return False
        if (self.possible[members].sum(1) == 1).all():
            return True
        values, own = self.c["values"][members], self.own[members]
        low, high = values[~own].max(initial=0), values[own].min()
        steps, most = np.arange(NODES) / (NODES - 1), STEPS * (NODES - 1)
        table = line(steps[None] - steps[:, None], epsilon)
        if not (hats([low], most, NODES) @ table @ hats([high], most, NODES).T).item() >= 1:
            return False
        outside = self.k[members] @ (self.possible & (self.undecided & ~members)[:, None])
        r = self.unary[members] - (2 * self.taken[members] + 2 * np.where(own, 0, outside)
                                   + pair_sums(self.k[np.ix_(members, members)], values, epsilon, NODES, most))
        margins = r - self.error[members] - (r + self.error[members])[own][:, None]
        return bool((margins[self.possible[members] & ~own] > 0).all())

    def round(self, number):
        members, epsilon = self.c["round"] == number, self.c["epsilon"][number - 1]
        for _ in range(ELIMINATIONS):
            if self.holds(members, epsilon):
                break
            self.eliminate()
        need(self.holds(members, epsilon), f"the pixels of round {number} are not proven")
        self.undecided &= ~members
        self.possible[members] = self.own[members]
        self.taken += self.k[:, members] @ self.own[members]

    def pairs(self, k, own):
        """What the pairs of each pixel cost."""
        return ((k @ own) * self.distance[own.argmax(1)]).sum(1)

    def mixture(self, points):
        """A bound on what is undecided, and the labels that it leaves no room for."""
        need(sum(weight for weight, *_ in points) <= 1, "the weights of a mixture are more than 1")
        u = self.undecided
        k, own, cost = self.k[np.ix_(u, u)], self.own[u], self.unary[u] - 2 * self.taken[u]
        sums = (lambda *point: cut_sums(k, self.cuts, *point)) if self.cuts else (lambda *point: pair_sums(k, *point))
        r = cost - sum(w * sums(values, e, nodes, levels) for w, e, nodes, levels, values in points)
        r = np.where(self.possible[u], r - self.error[u], np.inf)
        lowest = r.min(1)
        pairs = self.pairs(k, own) + self.error[u][own]
        terms = cost[own] + pairs - lowest
        excess = np.maximum(0.0, terms.sum() + len(terms) * 2.0**-52 * (np.abs(cost[own]) + pairs + np.abs(lowest)).sum())
        self.excess = min(self.excess, excess)
        self.possible[u] &= ~((r - lowest[:, None]) * (1 - FEW) - FEW * np.abs(lowest)[:, None] > excess)

    def energy(self):
        """Of x, from below and from above."""
        pairs = self.pairs(self.k, self.own)
        energy = self.unary[self.own].sum() + pairs.sum()
        error = self.sum_error.sum() + len(pairs) * 2.0**-52 * (np.abs(self.unary[self.own]) + pairs).sum()
        return energy - error, energy + error, (np.abs(self.unary[self.own]) + pairs).sum()

    def run(self):
        c = self.c
        for number in range(len(c["epsilon"]) + 1):
            if number > 0:
                self.round(number)
            if number == len(c["epsilon"]):
                for _ in range(ELIMINATIONS):
                    self.eliminate()
            for after, points in c["mixtures"]:
                if after == number:
                    self.mixture(points)
        low, high, magnitude = self.energy()
        proven = int((self.possible.sum(1) == 1).sum())
        if proven == len(self.unary) and self.possible[self.own].all():
            self.excess = 0.0
        lowest = self.unary.min(1)
        bound = max(low - self.excess, lowest.sum() - len(lowest) * 2.0**-52 * np.abs(lowest).sum())
        need(np.isfinite(c["bound"]) and c["bound"] <= bound and c["proven"] <= proven
             and low <= c["energy"] <= high + 1e-6 * magnitude,
             f"it claims more than it proves: energy {high:.10g}, bound {bound:.10g} and {proven} pixels were found")
        print(f"holds: energy {c['energy']:.12g}, bound {c['bound']:.12g}, {proven} of {len(self.unary)} pixels proven")


def main():
    words, distance = sys.argv[1:], None
    if words[:1] == ["--distance"] and len(words) > 1:
        distance = np.load(words[1], allow_pickle=False).astype("<f4").astype(float)
        words = words[2:]
    need(len(words) > 1, __doc__)
    unary = np.load(words[0], allow_pickle=False).astype("<f4")
    need(unary.ndim == 3 and np.isfinite(unary).all(), "the unary energies are not (height, width, labels)")
    images = [None if name == "-" else np.load(name, allow_pickle=False).astype("<f8") for name in words[2:]]
    c = read_certificate(words[1], unary.shape, len(images))
    need(hashlib.sha256(np.ascontiguousarray(unary).tobytes()).digest() == c["unary"], "the unary energies are others")
    height, width, labels = unary.shape
    need(distance is None or distance.shape == (labels, labels) and np.isfinite(distance).all(), "the distance is not (labels, labels)")
    print(f"{width} x {height} pixels, {labels} labels, exact operator, no cliques")
    k = kernel_matrix(c, unary.shape, images)
    Check(c, unary.reshape(-1, labels).astype(float), k, distance).run()


if __name__ == "__main__":
    main()
