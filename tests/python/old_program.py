"""A program as it is written for pydensecrf, down to its imports."""

import numpy as np
import pydensecrf.densecrf as dcrf
from pydensecrf.utils import create_pairwise_bilateral, unary_from_softmax


def dense_crf(image, probabilities, iterations=10):
    height, width = image.shape[:2]
    crf = dcrf.DenseCRF2D(width, height, probabilities.shape[0])
    crf.setUnaryEnergy(np.ascontiguousarray(unary_from_softmax(probabilities)))
    crf.addPairwiseGaussian(sxy=3, compat=3)
    crf.addPairwiseBilateral(sxy=50, srgb=5, rgbim=np.ascontiguousarray(image), compat=10)
    return np.array(crf.inference(iterations)).reshape(-1, height, width)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    picture = np.zeros((20, 30, 3), np.uint8)
    picture[:, 15:] = 200
    scores = rng.random((2, 20, 30)) + (np.arange(2)[:, None, None] == (np.arange(30) >= 15))
    mask = dense_crf(picture, scores / scores.sum(0)).argmax(0)
    assert (mask == (picture[..., 0] > 0)).all()
    assert create_pairwise_bilateral((1, 1), (1, 1, 1), picture, chdim=2).shape == (5, 600)
    print("ok")
