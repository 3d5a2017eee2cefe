#!/usr/bin/env python3
"""Check a certificate of `dcrf solve --operator exact --certificate FILE` with numpy alone.

    check_certificate.py UNARY.npy CERTIFICATE KERNEL...

UNARY.npy holds energies (height, width, labels). For every kernel, in their order, KERNEL is `-` for
a spatial one, or the image of a bilateral one as .npy (height, width, channels). All pairs of pixels
are held in memory, so a few thousand pixels are the limit. docs/certificate.md says what is checked.
"""
import hashlib
import io
import struct
import sys

import numpy as np

NODES, STEPS = 14, 16
MOST = STEPS * (NODES - 1)


def refuse(why):
    sys.exit(f"refused: {why}")


def read_certificate(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"DCRFCERT" or hashlib.sha256(data[:-32]).digest() != data[-32:]:
        refuse("this is no whole certificate")
    rest, c = io.BytesIO(data[8:-32]), {}
    take = lambda form: struct.unpack("<" + form, rest.read(struct.calcsize("<" + form)))
    array = lambda kind, count: np.frombuffer(rest.read(np.dtype(kind).itemsize * count), kind)
    version, exact, c["n"], c["labels"], kernels, cliques, c["rounds"], c["proven"] = take("II6Q")
    if version != 1 or not exact or cliques:
        refuse("only the exact operator without cliques is checked here")
    c["energy"], c["bound"], c["unary"], _ = take("dd32s32s")
    c["kernels"] = []
    for _ in range(kernels):
        weight, normalization, dimension, digest = take("dII32s")
        c["kernels"].append((weight, normalization, digest, array("<f8", dimension)))
    c["epsilon"] = array("<f8", c["rounds"] + 1)
    c["x"], c["round"] = array("<u2", c["n"]).astype(int), array("<u2", c["n"]).astype(int)
    c["values"] = np.zeros((c["n"], c["labels"]), int)
    for label in array("<u2", take("Q")[0]):
        c["values"][:, label] = array("u1", c["n"])
    return c


def kernel_matrix(certificate, shape, images):
    """K, every kernel with its weight, the diagonal zero."""
    total = 0
    y, x = np.mgrid[: shape[0], : shape[1]]
    for (weight, normalization, digest, factor), image in zip(certificate["kernels"], images):
        features = np.stack([x, y], -1).reshape(-1, 2).astype("<f8")
        if image is not None:
            features = np.hstack([features, image.reshape(len(features), -1)]).astype("<f8")
        if hashlib.sha256(features.tobytes()).digest() != digest:
            refuse("the image is another one")
        f = features * factor
        k = np.exp(-0.5 * ((f[:, None] - f[None]) ** 2).sum(-1))
        if normalization:
            k /= np.sqrt(np.outer(k.sum(1), k.sum(1)))
        total = total + weight * k
    np.fill_diagonal(total, 0)
    return total


def hats(values):
    """How much of each value is at each node."""
    return np.maximum(0, 1 - np.abs(values[:, None] / STEPS - np.arange(NODES)))


def reduced_costs(c, k, cost, possible, undecided, members, epsilon, tells_apart):
    """r of the members, by the values and the clipped line; None if they do not tell x apart."""
    line = np.clip((np.arange(NODES)[None] - np.arange(NODES)[:, None]) / ((NODES - 1) * epsilon), -1, 1)
    rows, x, values = np.flatnonzero(members), c["x"][members], c["values"][members]
    own = np.arange(c["labels"]) == x[:, None]
    low, high = values[~own].max(initial=0), values[own].min()
    if tells_apart and (hats(np.array([low])) @ line @ hats(np.array([high])).T).item() < 1:
        return None
    outside = k[rows] @ (possible & (undecided & ~members)[:, None])
    r = cost[rows] - 2 * np.where(own, 0, outside)
    for i in range(c["labels"]):
        at = hats(values[:, i])
        r[:, i] -= ((k[np.ix_(rows, rows)] @ at) @ line.T * at).sum(1)
    return r


def eliminate(k, cost, possible, undecided):
    """Labels that are worse than another one whatever the undecided others do."""
    worst = 2 * k @ (possible & undecided[:, None])
    possible &= ~((cost - cost.min(1, keepdims=True) - worst > 1e-9) & undecided[:, None])


def holds(c, k, cost, possible, undecided, members, epsilon):
    x = np.arange(len(cost)), c["x"]
    if not possible[x][members].all():
        return False
    if (possible[members].sum(1) == 1).all():
        return True
    r = reduced_costs(c, k, cost, possible, undecided, members, epsilon, True)
    if r is None:
        return False
    open_labels = possible[members].copy()
    open_labels[np.arange(len(r)), c["x"][members]] = False
    margins = r - r[np.arange(len(r)), c["x"][members]][:, None]
    return bool((margins[open_labels] > 1e-9).all())


def main():
    unary = np.load(sys.argv[1]).astype("<f4")
    c = read_certificate(sys.argv[2])
    images = [None if name == "-" else np.load(name).astype("<f8") for name in sys.argv[3:]]
    if hashlib.sha256(unary.tobytes()).digest() != c["unary"]:
        refuse("the unary energies are others")
    if len(images) != len(c["kernels"]):
        refuse("the number of kernels is another one")
    k = kernel_matrix(c, unary.shape, images)
    unary = unary.reshape(-1, c["labels"]).astype(float)
    cost, possible = unary.copy(), np.ones(unary.shape, bool)
    undecided, everyone = np.ones(c["n"], bool), np.arange(c["n"])
    for number in range(1, c["rounds"] + 1):
        members = c["round"] == number
        if not holds(c, k, cost, possible, undecided, members, c["epsilon"][number - 1]):
            eliminate(k, cost, possible, undecided)
            if not holds(c, k, cost, possible, undecided, members, c["epsilon"][number - 1]):
                refuse(f"the pixels of round {number} are not proven")
        undecided &= ~members
        possible[members] = np.arange(c["labels"]) == c["x"][members][:, None]
        cost -= 2 * k[:, members] @ possible[members]
    energy = unary[everyone, c["x"]].sum() + k[c["x"][:, None] != c["x"][None]].sum()
    excess = 0.0
    if undecided.any():
        eliminate(k, cost, possible, undecided)
        r = reduced_costs(c, k, cost, possible, undecided, undecided, c["epsilon"][-1], False)
        x, lowest = c["x"][undecided], np.where(possible[undecided], r, np.inf).min(1)
        pairs = k[np.ix_(undecided, undecided)][x[:, None] != x[None]].sum()
        excess = cost[undecided, x].sum() + pairs - lowest.sum()
        possible[undecided] &= r - lowest[:, None] <= excess + 1e-9
    proven = int((possible.sum(1) == 1).sum())
    if proven == c["n"] and possible[everyone, c["x"]].all():
        excess = 0.0
    if c["bound"] > energy - excess + 1e-6 or c["proven"] > proven or abs(c["energy"] - energy) > 1e-6 * (1 + abs(energy)):
        refuse("it claims more than it proves")
    print(f"holds: energy {energy:.6f}, bound {energy - excess:.6f}, {proven} of {c['n']} pixels proven")


if __name__ == "__main__":
    main()
