"""dcrf.mean_field, and arrays on a GPU: with a device that is none (tests/device/fake_backend.c). It believes an array of numpy
that says it is on a GPU, and what is read, waited for and freed can be seen. Its own memory cannot be read from here."""

import ctypes
import gc
import os
import unittest
import weakref

import numpy as np

os.environ["DCRF_CUDA_LIBRARY"] = os.environ["FAKE_BACKEND"]

import dcrf  # noqa: E402
from dcrf import _core  # noqa: E402

FAKE = ctypes.CDLL(os.environ["FAKE_BACKEND"])
FAKE.fake_backend_waited_for.restype = ctypes.c_void_p
FAKE.fake_backend_alive.restype = ctypes.c_size_t
KERNELS = {"spatial": (1.5, 0.4), "bilateral": (4, 30, 0.8), "operator": "exact"}


def scene(height=6, width=8, labels=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = (np.arange(width) * labels // width)[None].repeat(height, 0)
    image = (60 * truth[..., None] + rng.normal(0, 6, (height, width, 3)) + 40).clip(0, 255).astype(np.uint8)
    logits = rng.normal(0, 1, (labels, height, width)) + 2 * (truth == np.arange(labels)[:, None, None])
    return image, logits.astype(np.float32)


def expected(image, logits):
    """By a solver on the CPU."""
    model = dcrf.Model(image, logits=logits, **KERNELS)
    return model.solve("mf", iterations=10, damping=0, stationarity=0, polish=False)


class Interface:
    """An array of numpy as one on a GPU, by the CUDA array interface."""

    def __init__(self, array, **more):
        self.array, self.shape = array, array.shape
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.__array_interface__["data"][0], False),
            "strides": None if array.flags.c_contiguous else array.strides,
            "version": 3,
            **more,
        }


class Owner:
    """Something that can be seen to go."""


class Pack:
    """The same by DLPack."""

    def __init__(self, array, device=(2, 0)):
        self.array, self.shape, self.device = array, array.shape, device
        self.streams = []
        self.owner = Owner()

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        elements = tuple(step // self.array.itemsize for step in self.array.strides)
        address = self.array.__array_interface__["data"][0]
        return _core.to_dlpack(address, self.array.dtype.char, self.array.shape, elements, 0, self.owner)


class Tensor(ctypes.Structure):
    """DLTensor and DLManagedTensor, as the specification has them."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


def tensor_of(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(Tensor)).contents


class OnTheCpu(unittest.TestCase):
    def test_what_a_solver_finds(self):
        image, logits = scene()
        wanted = expected(image, logits)
        found = dcrf.mean_field(image, logits=logits, **KERNELS)
        self.assertIsInstance(found, dcrf.MeanFieldResult)
        self.assertEqual((found.marginals.dtype, found.labels.dtype), (np.float32, np.int32))
        np.testing.assert_array_equal(found.marginals, wanted.marginals)
        np.testing.assert_array_equal(found.labels, wanted.marginals.argmax(0))
        # all kinds, types and layouts
        energies = -(logits - np.log(np.exp(logits.astype(float)).sum(0)))
        for options in (
            {"unary": energies},
            {"unary": np.moveaxis(energies, 0, -1)},
            {"probabilities": np.exp(-energies)},
            {"logits": logits[None].astype(np.float64)},
            {"logits": logits[:, ::-1][:, ::-1], "image": np.moveaxis(image, -1, 0)},
            {"logits": np.repeat(logits, 2, -1)[..., ::2]},
        ):
            again = dcrf.mean_field(options.pop("image", image), **options, **KERNELS)
            np.testing.assert_allclose(again.marginals, found.marginals, atol=1e-5)
            np.testing.assert_array_equal(again.labels, found.labels)

    def test_what_is_asked_for(self):
        image, logits = scene()
        both = dcrf.mean_field(image, logits=logits, iterations=3, **KERNELS)
        self.assertIsNone(dcrf.mean_field(image, logits=logits, marginals=False, **KERNELS).marginals)
        self.assertIsNone(dcrf.mean_field(image, logits=logits, labels=False, **KERNELS).labels)
        none = dcrf.mean_field(image, logits=logits, iterations=0, **KERNELS).marginals
        self.assertFalse(np.array_equal(both.marginals, none))
        np.testing.assert_allclose(none, np.exp(logits) / np.exp(logits).sum(0), atol=1e-6)

    def test_into_the_callers_arrays(self):
        image, logits = scene()
        wanted = dcrf.mean_field(image, logits=logits, **KERNELS)
        q, labels = np.empty((6, 8, 3), np.float32), np.empty((6, 8), np.uint8)
        found = dcrf.mean_field(image, logits=logits, marginals=np.moveaxis(q, -1, 0), labels=labels, **KERNELS)
        np.testing.assert_array_equal(np.moveaxis(q, -1, 0), wanted.marginals)
        np.testing.assert_array_equal(labels, wanted.labels)
        self.assertIs(found.labels, labels)
        frozen = np.empty((6, 8), np.int32)
        frozen.flags.writeable = False
        for error, text, room in (
            (TypeError, "labels must be True, False, or an array", [1, 2]),
            (TypeError, "labels has elements of type float64", np.empty((6, 8))),
            (ValueError, "labels has the shape .8, 6.; .6, 8. is needed", np.empty((8, 6), np.int32)),
            (ValueError, "labels is not contiguous", np.empty((6, 16), np.int32)[:, ::2]),
            (ValueError, "labels is read-only", frozen),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                dcrf.mean_field(image, logits=logits, labels=room, **KERNELS)

    def test_strength(self):
        image, logits = scene()
        options = {"spatial": 2, "bilateral": [(4, 30), (3, 20)], "spatial_share": 0.3}
        for strength in (5, "auto"):
            model = dcrf.Model(image, logits=logits, strength=strength, **options)
            weights = [kernel["weight"] for kernel in model.kernels]
            own = {"spatial": (2, weights[0]), "bilateral": [(4, 30, weights[1]), (3, 20, weights[2])]}
            np.testing.assert_array_equal(
                dcrf.mean_field(image, logits=logits, strength=strength, **options).marginals,
                dcrf.mean_field(image, logits=logits, **own).marginals,
            )

    def test_complaints(self):
        image, logits = scene()
        wrong = logits.copy()
        wrong[1, 2, 3] = np.nan
        for error, text, options in (
            (TypeError, "exactly one of", {}),
            (TypeError, "exactly one of", {"logits": logits, "unary": logits}),
            (ValueError, "neither marginals nor labels", {"logits": logits, "labels": False, "marginals": False}),
            (ValueError, "x = 3, y = 2", {"logits": wrong}),
            (ValueError, "logits lies over .3, 4.", {"logits": logits[:, ::2, ::2], "labels_axis": 0}),
            (ValueError, "logits has masked", {"logits": np.ma.masked_less(logits, 0)}),
            (ValueError, "iterations is -1", {"logits": logits, "iterations": -1}),
            (ValueError, "does not fit", {"logits": np.zeros((3, 20, 30))}),
            (ValueError, "not a probability", {"probabilities": logits}),
            (ValueError, "needs a weight", {"logits": logits, "normalize": "none", "spatial": 2}),
            (ValueError, "spatial_share is 2", {"logits": logits, "spatial_share": 2}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                dcrf.mean_field(image, **{**KERNELS, **options})

    def test_many(self):
        scenes = [scene(seed=k) for k in range(5)]
        problems = [{"image": image, "logits": logits} for image, logits in scenes]
        problems.insert(2, {"logits": "nonsense"})
        found = dcrf.mean_field_many(problems, threads=2, errors="return", **KERNELS)
        self.assertIsInstance(found.pop(2), dcrf.ProblemError)
        for one, (image, logits) in zip(found, scenes):
            np.testing.assert_array_equal(one.marginals, dcrf.mean_field(image, logits=logits, **KERNELS).marginals)


class OnTheGpu(unittest.TestCase):
    def setUp(self):
        os.environ["FAKE_PLACE"] = "0"
        self.addCleanup(os.environ.pop, "FAKE_PLACE")
        self.image, self.logits = scene()
        self.wanted = dcrf.mean_field(self.image, logits=self.logits, device="cpu", **KERNELS)
        FAKE.fake_backend_waited_for()

    def assert_wanted(self, found):
        self.assertIsInstance(found.marginals, dcrf.DeviceArray)
        self.assertEqual(found.marginals.device, "cuda:0")
        np.testing.assert_allclose(np.asarray(found.marginals), self.wanted.marginals, atol=2e-5)
        np.testing.assert_array_equal(np.asarray(found.labels), self.wanted.labels)

    def test_host_arrays(self):
        found = dcrf.mean_field(self.image, logits=self.logits, device="cuda", **KERNELS)
        self.assertIsInstance(found.marginals, np.ndarray)
        np.testing.assert_allclose(found.marginals, self.wanted.marginals, atol=2e-5)

    def test_every_array_and_protocol(self):
        for wrap in (Interface, Pack):
            self.assert_wanted(dcrf.mean_field(wrap(self.image), logits=wrap(self.logits), **KERNELS))
            self.assert_wanted(dcrf.mean_field(self.image, logits=wrap(self.logits), device="cuda", **KERNELS))
            self.assert_wanted(dcrf.mean_field(wrap(self.image), logits=self.logits, device="cuda:0", **KERNELS))
            # strides, a batch of one, labels last, doubles
            backwards = np.ascontiguousarray(self.logits[:, ::-1])[:, ::-1]
            last = np.ascontiguousarray(np.moveaxis(self.logits, 0, -1))
            apart = np.repeat(self.logits, 2, -1)[..., ::2]
            for logits in (backwards, last, apart, self.logits[None], self.logits.astype(np.float64)):
                image = wrap(np.ascontiguousarray(np.moveaxis(self.image, -1, 0)))
                self.assert_wanted(dcrf.mean_field(image, logits=wrap(logits), **KERNELS))
        # our own results are arrays like others
        found = dcrf.mean_field(self.image, logits=Interface(self.logits), iterations=0, **KERNELS)
        again = dcrf.mean_field(self.image, probabilities=found.marginals, **KERNELS)
        self.assert_wanted(again)

    def test_into_the_callers_arrays(self):
        for wrap in (Interface, Pack):
            q, labels = wrap(np.empty((6, 2, 8, 3), np.float32)[:, 0].transpose(2, 0, 1)), wrap(np.empty((6, 8), np.uint16))
            for logits in (self.logits, wrap(self.logits)):
                found = dcrf.mean_field(self.image, logits=logits, marginals=q, labels=labels, **KERNELS)
                self.assertIs(found.marginals, q)
                np.testing.assert_allclose(q.array, self.wanted.marginals, atol=2e-5)
                np.testing.assert_array_equal(labels.array, self.wanted.labels)
                q.array[...] = 0
        room = np.empty((6, 8), np.int32)
        found = dcrf.mean_field(self.image, logits=Pack(self.logits), labels=room, **KERNELS)
        np.testing.assert_array_equal(room, self.wanted.labels)
        self.assertIsInstance(found.marginals, dcrf.DeviceArray)
        frozen = Interface(room)
        frozen.__cuda_array_interface__["data"] = (frozen.__cuda_array_interface__["data"][0], True)
        with self.assertRaisesRegex(ValueError, "labels is read-only"):
            dcrf.mean_field(self.image, logits=self.logits, labels=frozen, **KERNELS)

    def test_many_together(self):
        """Problems of one shape are one call; their results are those of each alone, and go when the last one goes."""
        fast = {"spatial": (1.5, 0.4), "bilateral": (4, 30, 0.8)}
        scenes = [scene(seed=k) for k in range(7)]
        FAKE.fake_backend_pictures.restype = ctypes.c_size_t
        for wrap in (np.asarray, Interface, Pack):
            problems = [{"image": wrap(image), "logits": wrap(logits)} for image, logits in scenes]
            alone = [dcrf.mean_field(image, logits=logits, device="cuda", **fast) for image, logits in scenes]
            gc.collect()
            before = FAKE.fake_backend_alive()
            found = dcrf.mean_field_many(problems, threads=1, device="cuda:0", **fast)
            self.assertEqual(FAKE.fake_backend_pictures(), 1)  # the last one: 3 + 3 + 1
            for one, other in zip(found, alone):
                np.testing.assert_array_equal(np.asarray(one.marginals), other.marginals)
                np.testing.assert_array_equal(np.asarray(one.labels), other.labels)
            found = dcrf.mean_field_many(iter(problems), threads=1, device="cuda:0", **fast)
            self.assertEqual(FAKE.fake_backend_pictures(), 7)
            for one, other in zip(found, alone):
                np.testing.assert_array_equal(np.asarray(one.marginals), other.marginals)
            if wrap is not np.asarray:
                self.assertEqual(FAKE.fake_backend_alive(), before + 2)  # the marginals of all, and the labels
            found = found[5:6]
            np.testing.assert_array_equal(np.asarray(found[0].labels), alone[5].labels)
            del found, one
            self.assertEqual(FAKE.fake_backend_alive(), before)

    def test_a_batch_in_one_array(self):
        fast = {"spatial": (1.5, 0.4), "bilateral": (4, 30, 0.8)}
        images, logits = (np.stack(arrays) for arrays in zip(*(scene(seed=k) for k in range(5))))
        alone = [dcrf.mean_field(image, logits=one, device="cuda:0", **fast) for image, one in zip(images, logits)]
        FAKE.fake_backend_pictures.restype = ctypes.c_size_t
        last = np.ascontiguousarray(np.moveaxis(logits, 1, -1))  # labels last
        apart = np.ascontiguousarray(np.repeat(logits, 2, 0))[::2]
        for image, unary in ((images, logits), (Interface(images), Pack(logits)), (Pack(images), Interface(last)),
                             (images, Interface(logits)), (Interface(images), Interface(apart)), (Pack(images), logits)):
            found = None
            gc.collect()
            before = FAKE.fake_backend_alive()
            found = dcrf.mean_field_batch(image, logits=unary, device="cuda:0", **fast)
            self.assertEqual(FAKE.fake_backend_pictures(), 5)
            self.assertEqual((found.marginals.shape, found.labels.shape), ((5, 3, 6, 8), (5, 6, 8)))
            self.assertIsInstance(found.labels, np.ndarray if image is images and unary is logits else dcrf.DeviceArray)
            for k, one in enumerate(alone):
                np.testing.assert_array_equal(np.asarray(found.marginals)[k], one.marginals)
                np.testing.assert_array_equal(np.asarray(found.labels)[k], one.labels)
            if not isinstance(found.labels, np.ndarray):
                self.assertEqual(FAKE.fake_backend_alive(), before + 2)
        # into the caller's arrays, labels last
        q, labels = Interface(np.zeros((5, 6, 8, 3), np.float32).transpose(0, 3, 1, 2)), Interface(np.zeros((5, 6, 8), np.uint8))
        found = dcrf.mean_field_batch(Pack(images), logits=Pack(logits), marginals=q, labels=labels, **fast)
        self.assertIs(found.marginals, q)
        np.testing.assert_array_equal(q.array[3], alone[3].marginals)
        np.testing.assert_array_equal(labels.array, [one.labels for one in alone])
        self.assertIsNone(dcrf.mean_field_batch(Pack(images), logits=Pack(logits), labels=False, **fast).labels)
        # strengths are those of each image
        measured = dcrf.mean_field_batch(Interface(images), logits=Interface(logits), spatial=2, bilateral=(4, 30))
        one = dcrf.mean_field(images[4], logits=logits[4], spatial=2, bilateral=(4, 30), device="cuda:0")
        np.testing.assert_array_equal(np.asarray(measured.marginals)[4], one.marginals)

    def test_a_batch_on_the_cpu(self):
        images, logits = (np.stack(arrays) for arrays in zip(*(scene(seed=k) for k in range(3))))
        q = np.empty((3, 3, 6, 8), np.float32)
        found = dcrf.mean_field_batch(images, logits=logits, marginals=q, device="cpu", **KERNELS)
        self.assertIs(found.marginals, q)
        for k in range(3):
            alone = dcrf.mean_field(images[k], logits=logits[k], device="cpu", **KERNELS)
            np.testing.assert_array_equal(q[k], alone.marginals)
            np.testing.assert_array_equal(found.labels[k], alone.labels)
        for error, text, options in (
            (ValueError, "first axis is that of the images.*logits .3, 3, 6, 8., image .2,", {"images": images[:2], "logits": logits}),
            (ValueError, "first axis is that of the images", {"logits": logits[:0]}),
            (TypeError, "exactly one of", {"images": images}),
            (TypeError, "labels must be True, False, or an array", {"images": images, "logits": logits, "labels": [1]}),
            (TypeError, "no option 'nonsense'", {"images": images, "logits": logits, "nonsense": 1}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                dcrf.mean_field_batch(device="cpu", **options)

    def test_the_wrong_one_of_many(self):
        scenes = [scene(seed=k) for k in range(6)]
        problems = [{"image": image, "logits": Interface(logits)} for image, logits in scenes]
        scenes[2][1][1, 3, 4] = np.nan
        problems[4]["iterations"] = "x"
        found = dcrf.mean_field_many(iter(problems), errors="return", spatial=(1.5, 0.4), bilateral=(4, 30, 0.8))
        self.assertEqual([isinstance(one, dcrf.ProblemError) for one in found], [k in (2, 4) for k in range(6)])
        self.assertIn("problem 2: the unary holds a number at x = 4, y = 3, label 1, that is not finite", str(found[2]))
        for k in (0, 5):
            alone = dcrf.mean_field(scenes[k][0], logits=scenes[k][1], device="cuda", spatial=(1.5, 0.4), bilateral=(4, 30, 0.8))
            np.testing.assert_array_equal(np.asarray(found[k].marginals), alone.marginals)
        with self.assertRaises(dcrf.ProblemError) as raised:
            dcrf.mean_field_many(iter(problems), spatial=(1.5, 0.4))
        self.assertEqual(raised.exception.index, 2)

    def test_half_precision(self):
        """float16, and bfloat16, which numpy has not: the upper half of a float."""

        class Brain(Pack):
            def __dlpack__(self, *, stream=None):
                capsule = super().__dlpack__(stream=stream)
                tensor_of(capsule).code = 4
                return capsule

        half = self.logits.astype(np.float16)
        bits = (self.logits.view(np.uint32) >> 16).astype(np.uint16)
        brain = (bits.astype(np.uint32) << 16).view(np.float32)
        for given, same in ((Interface(half), half), (Pack(half), half), (Brain(bits), brain)):
            for options in (KERNELS, {"operator": "exact", "strength": "auto", "bilateral": (4, 30), "spatial": 2}):
                found = dcrf.mean_field(self.image, logits=given, **options)
                wanted = dcrf.mean_field(self.image, logits=same, device="cpu", **options)
                np.testing.assert_allclose(np.asarray(found.marginals), wanted.marginals, atol=2e-5)

    def test_strength_is_measured_on_the_host(self):
        options = {"spatial": 2, "bilateral": (4, 30), "operator": "exact"}
        wanted = dcrf.mean_field(self.image, logits=self.logits, device="cpu", **options)
        found = dcrf.mean_field(Interface(self.image), logits=Pack(self.logits), **options)
        np.testing.assert_allclose(np.asarray(found.marginals), wanted.marginals, atol=2e-5)

    def test_streams(self):
        def waited(logits, **options):
            dcrf.mean_field(logits=logits, spatial=(2, 1.0), **options)
            return FAKE.fake_backend_waited_for()

        self.assertIsNone(waited(self.logits, device="cuda"))
        self.assertIsNone(waited(Interface(self.logits, stream=None)))
        self.assertEqual(waited(Interface(self.logits, stream=7)), 7)
        self.assertEqual(waited(Interface(self.logits)), 1)
        self.assertEqual(waited(Interface(self.logits, stream=None), stream=4711), 4711)
        pack = Pack(self.logits)
        self.assertEqual(waited(pack), 1)
        self.assertEqual(pack.streams, [1])
        with self.assertRaisesRegex(ValueError, "logits says that its stream is 0"):
            waited(Interface(self.logits, stream=0))

    def test_our_protocols(self):
        found = dcrf.mean_field(Interface(self.image), logits=Interface(self.logits), **KERNELS)
        for result, code in ((found.marginals, 2), (found.labels, 0)):
            interface = result.__cuda_array_interface__
            self.assertEqual(interface["version"], 3)
            self.assertIsNone(interface["stream"])
            self.assertEqual(np.dtype(interface["typestr"]), result.dtype)
            data = (ctypes.c_char * (4 * result.size)).from_address(interface["data"][0])
            FAKE.fake_enter()
            on_the_device = bytes(data)
            FAKE.fake_leave()
            self.assertEqual(on_the_device, np.asarray(result).tobytes())
            self.assertEqual(result.__dlpack_device__(), (2, 0))
            for stream in (None, 1, 2, 12345):
                capsule = result.__dlpack__(stream=stream, max_version=(1, 0), dl_device=(2, 0), copy=False)
                tensor = tensor_of(capsule)
                self.assertEqual((tensor.device_type, tensor.device_id, tensor.byte_offset), (2, 0, 0))
                self.assertEqual((tensor.code, tensor.bits, tensor.lanes), (code, 32, 1))
                self.assertEqual(tuple(tensor.shape[: tensor.ndim]), result.shape)
                self.assertEqual(tensor.data, interface["data"][0])
                self.assertEqual(tensor.strides[tensor.ndim - 1], 1)
            with self.assertRaises(BufferError):
                result.__dlpack__(copy=True)
            with self.assertRaises(BufferError):
                result.__dlpack__(dl_device=(1, 0))
        self.assertEqual((found.labels.ndim, found.labels.size, len(found.labels)), (2, 48, 6))
        self.assertIn("cuda:0", repr(found.labels))
        self.assertEqual(np.asarray(found.labels, dtype=float).dtype, float)

    def test_lifetimes(self):
        gc.collect()
        before = FAKE.fake_backend_alive()
        found = dcrf.mean_field(logits=Interface(self.logits), spatial=(2, 1.0))
        self.assertEqual(FAKE.fake_backend_alive(), before + 2)
        marginals = found.marginals
        del found
        self.assertEqual(FAKE.fake_backend_alive(), before + 1)
        capsule = marginals.__dlpack__()
        del marginals  # the capsule has it
        self.assertEqual(FAKE.fake_backend_alive(), before + 1)
        held, *_ = _core.from_dlpack(capsule)  # and now the consumer
        del capsule
        self.assertEqual(FAKE.fake_backend_alive(), before + 1)
        del held
        self.assertEqual(FAKE.fake_backend_alive(), before)
        # what others give is given back, also where the call fails
        for options in ({}, {"iterations": -1}):
            pack = Pack(self.logits)
            gone = weakref.ref(pack.owner)
            try:
                dcrf.mean_field(logits=pack, spatial=(2, 1.0), **options)
            except ValueError:
                self.assertTrue(options)
            pack.owner = None
            gc.collect()
            self.assertIsNone(gone())
        self.assertEqual(FAKE.fake_backend_alive(), before)
        with self.assertRaisesRegex(ValueError, "taken before"):
            capsule = Pack(self.logits).__dlpack__()
            _core.from_dlpack(capsule)
            _core.from_dlpack(capsule)

    def test_complaints(self):
        logits, image = self.logits, self.image

        class Strange(Pack):
            def __dlpack__(self, *, stream=None):
                capsule = super().__dlpack__(stream=stream)
                tensor_of(capsule).bits = 128
                return capsule

        for error, text, arguments, options in (
            (TypeError, "logits on the GPU has elements of type complex64", (), {"logits": Interface(logits.astype("c8"))}),
            (TypeError, "logits on the GPU has elements of a type", (), {"logits": Strange(logits)}),
            (TypeError, "the image on the GPU has", (Interface(image.astype("i8")),), {"logits": logits}),
            (ValueError, "logits has a mask", (), {"logits": Interface(logits, mask=logits > 0)}),
            (ValueError, "logits has the shape .3, 0, 8.: it is empty", (), {"logits": Interface(logits[:, :0])}),
            (ValueError, "device is cpu, and logits is on cuda:0", (), {"logits": Interface(logits), "device": "cpu"}),
            (ValueError, "device is cuda:1, and logits", (), {"logits": Interface(logits), "device": "cuda:1"}),
            (ValueError, "does not fit", (image,), {"logits": Interface(np.zeros((3, 20, 30)))}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                dcrf.mean_field(*arguments, **{**KERNELS, **options})
        wrong = logits.copy()
        wrong[1, 2, 3] = np.inf
        with self.assertRaisesRegex(ValueError, "x = 3, y = 2, label 1, that is not finite"):
            dcrf.mean_field(logits=Interface(wrong), spatial=(2, 1.0))
        # a flattened grid, every other element
        flat = np.repeat(logits.reshape(3, 48), 2, 1)[:, ::2]
        found = dcrf.mean_field(image, logits=Interface(flat), **KERNELS)
        self.assert_wanted(found)
        del os.environ["FAKE_PLACE"]
        with self.assertRaisesRegex(ValueError, "says that it is on a GPU, and its memory is that of the host"):
            dcrf.mean_field(logits=Interface(logits), spatial=(2, 1.0))
        os.environ["FAKE_PLACE"] = "1"
        with self.assertRaisesRegex(ValueError, "the image is on cuda:1|on cuda:1"):
            dcrf.mean_field(Interface(image), logits=dcrf._calls.Calls().empty((3, 6, 8), np.float32, "cuda:0"), **KERNELS)
        os.environ["FAKE_PLACE"] = "0"
        with self.assertRaisesRegex(ValueError, "has to be copied"):
            dcrf.mean_field(logits=Interface(logits), spatial=(2, 1.0)).labels.__array__(copy=False)

    def test_models_take_a_copy(self):
        wanted = dcrf.solve(self.image, logits=self.logits, **KERNELS)
        for wrap in (Interface, Pack):
            found = dcrf.solve(wrap(self.image), logits=wrap(self.logits), **KERNELS)
            np.testing.assert_array_equal(found.marginals, wanted.marginals)
        self.assertEqual(dcrf.energy(unary=Pack(self.logits), labels=wanted.labels, spatial=(2, 0)).pairwise, 0)

    def test_many(self):
        problems = [{"image": Interface(self.image), "logits": Pack(self.logits)} for _ in range(6)]
        for found in dcrf.mean_field_many(problems, threads=3, **KERNELS):
            self.assert_wanted(found)
        # over all devices where the arrays are on the host
        os.environ.pop("FAKE_PLACE")
        problems = [{"image": self.image, "logits": self.logits}] * 4
        for found in dcrf.mean_field_many(problems, device="cuda", **KERNELS):
            np.testing.assert_allclose(found.marginals, self.wanted.marginals, atol=2e-5)
        os.environ["FAKE_PLACE"] = "0"


if __name__ == "__main__":
    unittest.main()
