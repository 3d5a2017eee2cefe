# %% [markdown]
# # A tour of dcrf in Python
#
# Runs as a script, or cell by cell in an editor that knows `# %%`. Pictures go to the folder given as
# the first argument (`tour/` without one). Nothing but numpy is needed; the pictures are made here.

# %%
import pathlib
import sys

import numpy as np

import dcrf
from dcrf._png import encode

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "tour")
folder.mkdir(parents=True, exist_ok=True)


def save(name, picture):
    (folder / f"{name}.png").write_bytes(encode(picture))


def colours(labels):
    """The picture of a labelling."""
    return np.array([(0, 0, 0), (200, 60, 40), (60, 140, 200), (230, 200, 60)], np.uint8)[labels]


# %% [markdown]
# ## A picture, and what a network might say about it
#
# Three regions with texture; the network is right on average, blurred at the borders, and noisy.

# %%
rng = np.random.default_rng(0)
height, width = 90, 120
y, x = np.mgrid[:height, :width]
truth = np.where((x - 40) ** 2 + (y - 45) ** 2 < 900, 1, np.where(x + y / 2 > 110, 2, 0))
image = np.array([(70, 90, 60), (180, 150, 90), (90, 110, 180)])[truth] + rng.normal(0, 8, (height, width, 3))
image = np.clip(image, 0, 255).astype(np.uint8)

scores = np.stack([truth == i for i in range(3)]).astype(float)
for _ in range(6):  # blurred, as networks are
    scores = (scores + np.roll(scores, 1, 1) + np.roll(scores, -1, 1) + np.roll(scores, 1, 2)
              + np.roll(scores, -1, 2)) / 5
logits = 3 * scores + rng.normal(0, 1, scores.shape)
probabilities = np.exp(logits) / np.exp(logits).sum(0)

save("1-image", image)
save("2-network", colours(probabilities.argmax(0)))

# %% [markdown]
# ## From network output to a mask
#
# `solve` takes probabilities, logits or energies, labels first or last, of any type. The default
# method is mean field, the fastest. The LP relaxation also proves how good its answer is.

# %%
result = dcrf.solve(image, probabilities=probabilities, bilateral=(30, 20, 3), method="lp")
print(result)
save("3-mask", colours(result.labels))
before = dcrf.metrics.mean_iou(probabilities.argmax(0), truth)
after = dcrf.metrics.mean_iou(result.labels, truth)
print(f"mean IoU {before:.3f} of the network, {after:.3f} with the CRF")
assert after > before

# %% [markdown]
# ## Reading the certificate
#
# `energy` is that of the labelling, and no labelling at all has less than `lower_bound`. The relative
# gap is therefore the most that any method could still gain: not an estimate, a proof. Mean field is
# faster and has no bound of its own; `certify` gives one to any labelling.

# %%
model = dcrf.Model(image, probabilities=probabilities, bilateral=(30, 20, 3))
fast = model.solve("mf")
certificate = model.certify(fast.labels)
print(f"LP:         energy {result.energy:.2f}, bound {result.lower_bound:.2f}, "
      f"gap {100 * result.relative_gap:.3f} %")
assert result.lower_bound <= result.energy and result.relative_gap < 0.05
print(f"mean field: {certificate}")
assert certificate.lower_bound <= min(fast.energy, result.energy)

# %% [markdown]
# ## From scribbles to a mask
#
# A few strokes say what is what. Energies follow from the colours under the strokes of each label and from
# the ways to them; `dcrf.Scribbles` keeps what depends on the image alone, for one more stroke.

# %%
scribbles = np.full((height, width), -1)
scribbles[40:50, 35:45] = 1
scribbles[10, 5:60] = 0
scribbles[80, 100:115] = 2
scribbled = dcrf.Scribbles(image, labels=3)
mask = scribbled.update(scribbles)
save("4-scribbles", np.where(scribbles[..., None] >= 0, colours(np.maximum(scribbles, 0)), image // 2))
save("5-from-scribbles", colours(mask))
print(f"accuracy from scribbles: {dcrf.metrics.accuracy(mask, truth):.3f}")
assert dcrf.metrics.accuracy(mask, truth) > 0.9

# %% [markdown]
# ## A volume
#
# Three axes, slices farther apart than pixels: `spacing` is in the order of the axes.

# %%
z, v, u = np.mgrid[:8, :32, :32]
ball = ((z - 4) * 3) ** 2 + (v - 16) ** 2 + (u - 16) ** 2 < 100
volume = (ball * 400 + rng.normal(0, 60, ball.shape)).astype(np.int16)
p = np.clip(0.5 + 0.2 * np.where(ball, 1, -1) + rng.normal(0, 0.15, ball.shape), 0.02, 0.98)
solved = dcrf.solve(volume, probabilities=np.stack([1 - p, p]), method="mf", spacing=(3, 1, 1),
                    spatial=(2, 1), bilateral=(6, 100, 3))
print(f"volume: accuracy {((p > 0.5) == ball).mean():.3f} before, {(solved.labels == ball).mean():.3f} after")
save("6-volume-slice", solved.picture())
assert (solved.labels == ball).mean() > ((p > 0.5) == ball).mean()

# %% [markdown]
# ## Choosing parameters
#
# A model keeps its lattices when a weight changes, so trying weights is cheap. Two warnings come with
# every result: `is_constant` (the weights drown the unary energies) and a large gap.

# %%
table = []
for weight in (0, 0.5, 1, 2, 4, 8, 16, 200):
    model.set_weight(1, weight)
    attempt = model.solve("mf")
    table.append((dcrf.metrics.mean_iou(attempt.labels, truth), weight, attempt.is_constant))
for score, weight, is_constant in table:
    print(f"bilateral weight {weight:>5}: mean IoU {score:.3f}{'  (one label everywhere)' if is_constant else ''}")
assert max(table)[0] > table[0][0]

# %% [markdown]
# ## Batches
#
# `solve_many` gives every picture to a thread of its own; results are those of `solve`, byte for byte.

# %%
problems = [{"image": np.roll(image, shift, 1), "probabilities": np.roll(probabilities, shift, 2)}
            for shift in range(0, 40, 10)]
results = dcrf.solve_many(problems, method="mf", bilateral=(30, 20, 3))
print([round(r.energy, 1) for r in results])

# %% [markdown]
# ## Programs written for pydensecrf
#
# Change the imports, keep the rest. The numbers are those of pydensecrf, which is another model: raw
# lattice sums with their diagonal, and a pair counts once.

# %%
import dcrf.pydensecrf.densecrf as densecrf
from dcrf.pydensecrf.utils import unary_from_softmax

crf = densecrf.DenseCRF2D(width, height, 3)
crf.setUnaryEnergy(unary_from_softmax(probabilities))
crf.addPairwiseGaussian(sxy=3, compat=3)
crf.addPairwiseBilateral(sxy=30, srgb=20, rgbim=image, compat=6)
mask = np.argmax(crf.inference(10), axis=0).reshape(height, width)
print(f"drop-in: mean IoU {dcrf.metrics.mean_iou(mask, truth):.3f}")
save("7-drop-in", colours(mask))
