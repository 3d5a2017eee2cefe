"""The drop-in's oracle, tests/oracle/naive_densecrf.c, with the calls of pydensecrf: for the tests and for
script/bench-python. NAIVE_DENSECRF names the shared library."""

import ctypes
import os

import numpy as np


def _load():
    library = ctypes.CDLL(os.environ["NAIVE_DENSECRF"])
    floats, size = np.ctypeslib.ndpointer(np.float32, flags="C"), ctypes.c_size_t
    library.naive_new.restype = ctypes.c_void_p
    library.naive_new.argtypes = [size, size, floats]
    library.naive_free.argtypes = [ctypes.c_void_p]
    library.naive_add.argtypes = [
        ctypes.c_void_p, size, floats, ctypes.c_int, floats, ctypes.c_int,
    ]
    library.naive_features.argtypes = [
        size, size, ctypes.c_float, ctypes.c_float, size, ctypes.c_void_p, floats, floats,
    ]
    library.naive_infer.argtypes = [ctypes.c_void_p, size, floats]
    return library


def available():
    return bool(os.environ.get("NAIVE_DENSECRF"))


class DenseCRF:
    def __init__(self, nvar, nlabels):
        self._library = _load()
        self._nvar, self._nlabels = int(nvar), int(nlabels)
        self._crf, self._kernels = None, []

    def __del__(self):
        if self._crf:
            self._library.naive_free(self._crf)

    def setUnaryEnergy(self, u):
        self._crf = self._library.naive_new(
            self._nvar, self._nlabels, np.ascontiguousarray(u, np.float32)
        )

    def addPairwiseEnergy(self, features, compat, kernel=1, normalization=3):
        """features (d, N), as there."""
        self._add(np.ascontiguousarray(np.transpose(features), np.float32), compat, normalization)

    def _add(self, rows, compat, normalization):
        values = np.atleast_1d(np.ascontiguousarray(compat, np.float32))
        assert 0 == self._library.naive_add(
            self._crf, rows.shape[1], rows, np.ndim(compat), values, normalization
        )

    def inference(self, niter):
        q = np.empty((self._nlabels, self._nvar), np.float32)
        assert 0 == self._library.naive_infer(self._crf, niter, q)
        return q


class DenseCRF2D(DenseCRF):
    def __init__(self, w, h, nlabels):
        super().__init__(w * h, nlabels)
        self._w, self._h = w, h

    def _features(self, sxy, srgb, image):
        sx, sy = np.broadcast_to(sxy, 2)
        channels = 0 if image is None else image.shape[2]
        sigmas = np.array(np.broadcast_to(srgb, max(channels, 1)), np.float32)
        rows = np.empty((self._nvar, 2 + channels), np.float32)
        pixels = None if image is None else np.ascontiguousarray(image, np.uint8)
        self._library.naive_features(
            self._w, self._h, sx, sy, channels,
            None if image is None else pixels.ctypes.data, sigmas, rows,
        )
        return rows

    def addPairwiseGaussian(self, sxy, compat, kernel=1, normalization=3):
        self._add(self._features(sxy, 1, None), compat, normalization)

    def addPairwiseBilateral(self, sxy, srgb, rgbim, compat, kernel=1, normalization=3):
        self._add(self._features(sxy, srgb, rgbim), compat, normalization)
