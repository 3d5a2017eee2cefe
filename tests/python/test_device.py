"""device=, DCRF_DEVICE and dcrf.devices(): with a device that is none (tests/device/fake_backend.c), and without any.

The library of a device is found once in a process, so every environment has a process of its own.
"""

import os
import pickle
import subprocess
import sys
import textwrap
import unittest

import numpy as np

import dcrf

FAKE = os.environ["FAKE_BACKEND"]
NOWHERE = "/nowhere/libdcrf-cuda.so.0"

PREAMBLE = """
import copy, os, pickle, sys
import numpy as np
import dcrf

def scene(height=6, width=8, labels=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = (np.arange(width) * labels // width)[None].repeat(height, 0)
    image = (60 * truth[..., None] + rng.normal(0, 6, (height, width, 3)) + 40).clip(0, 255).astype(np.uint8)
    return image, rng.normal(0, 1, (height, width, labels)) - 2 * (truth[..., None] == np.arange(labels))

image, unary = scene()
exact = {"operator": "exact", "spatial": (2, 0.3), "bilateral": (4, 30, 0.3)}

def complaint(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
    return "no complaint"
"""


def run(program, library=FAKE, **environment):
    """What a program prints, with this library as the device's."""
    environment = {**os.environ, "DCRF_CUDA_LIBRARY": library, **environment}
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(program)], env=environment, capture_output=True, text=True,
        timeout=1200, check=False,
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.splitlines()


class WithoutDevice(unittest.TestCase):
    def test_none(self):
        lines = run(
            """
            print(dcrf.devices(), issubclass(dcrf.DeviceError, RuntimeError))
            for call in (dcrf.Model, dcrf.solve):
                print(complaint(call, image, unary=unary, device="cuda"))
            print(complaint(dcrf.Operator, shape=(4, 5), sigma=2, device="cuda:1"))
            labels = np.zeros((6, 8), int)
            print(complaint(dcrf.energy, image, unary=unary, labels=labels, device="cuda"))
            print(complaint(dcrf.certify, image, unary=unary, labels=labels, device="cuda"))
            print(complaint(dcrf.solve_many, [{"image": image, "unary": unary}], device="cuda"))
            print(complaint(dcrf.Model, image, unary=unary, device="gpu"))
            """,
            NOWHERE,
        )
        self.assertEqual(lines[0], "[] True")
        for line in lines[1:3] + lines[4:6]:
            self.assertRegex(line, f"^DeviceError: device=cuda: DCRF_CUDA_LIBRARY: {NOWHERE}: ")
        self.assertRegex(lines[3], f"^DeviceError: device=cuda:1: DCRF_CUDA_LIBRARY: {NOWHERE}: ")
        self.assertRegex(lines[6], "^ProblemError: problem 0: device=cuda: DCRF_CUDA_LIBRARY: ")
        self.assertEqual(lines[7], "ValueError: device=gpu: 'gpu' is not a device; devices are cpu, cuda and cuda:N")

    def test_other_version(self):
        lines = run('print(complaint(dcrf.Model, unary=unary, device="cuda"))', FAKE_VERSION="4711")
        self.assertIn("is not of this version of dcrf", lines[0])

    def test_the_environment_is_named(self):
        program = "print(complaint(dcrf.solve, image, unary=unary)); print(dcrf.solve(unary=unary, device='cpu').energy)"
        lines = run(program, NOWHERE, DCRF_DEVICE="cuda")
        self.assertRegex(lines[0], f"^DeviceError: DCRF_DEVICE=cuda: DCRF_CUDA_LIBRARY: {NOWHERE}: ")
        self.assertTrue(float(lines[1]))
        lines = run(program, NOWHERE, DCRF_DEVICE="tpu")
        self.assertRegex(lines[0], "^ValueError: DCRF_DEVICE=tpu: 'tpu' is not a device")

    def test_cpu_is_what_there_was(self):
        program = """
            results = [dcrf.solve(image, unary=unary, method="lp", **options) for options in ({}, {"device": "cpu"})]
            print(results[0].labels.tobytes() == results[1].labels.tobytes(),
                  results[0].marginals.tobytes() == results[1].marginals.tobytes(),
                  results[0].lower_bound == results[1].lower_bound)
            model = dcrf.Model(image, unary=unary)
            print(model.device, "cuda" in repr(model), dcrf.Operator(shape=(4, 5), sigma=2).device)
            import hashlib
            print(hashlib.sha256(results[0].marginals.tobytes()).hexdigest())
        """
        plain = run(program, NOWHERE)
        self.assertEqual(plain[:2], ["True True True", "cpu False cpu"])
        for value in ("cpu", ""):
            self.assertEqual(run(program, NOWHERE, DCRF_DEVICE=value), plain)


class WithDevice(unittest.TestCase):
    def test_list(self):
        lines = run(
            """
            for device in dcrf.devices():
                print(device.name, device.description, device.memory_bytes >> 30, device.free_bytes >> 30)
            """
        )
        self.assertEqual(lines, ["cuda:0 fake 0 3 1", "cuda:1 fake 1 3 1"])
        self.assertEqual(run("print(dcrf.devices())", FAKE_DEVICES="none"), ["[]"])

    def test_same_answers(self):
        lines = run(
            """
            for method in ("mf", "qp", "lp"):
                here, there = (dcrf.solve(image, unary=unary, method=method, device=device, **exact)
                               for device in ("cpu", "cuda"))
                print((here.labels == there.labels).all(), abs(here.marginals - there.marginals).max() < 1e-4,
                      abs(here.energy - there.energy) < 1e-5)
                if method == "lp":
                    print(there.lower_bound <= there.energy, abs(here.lower_bound - there.lower_bound) < 0.01)
            labels = here.labels
            here, there = (dcrf.energy(image, unary=unary, labels=labels, device=device, **exact).total
                           for device in (None, "cuda:1"))
            print(abs(here - there) < 1e-5)
            there = dcrf.certify(image, unary=unary, labels=labels, device="cuda", **exact)
            print(there.lower_bound <= there.energy)
            """
        )
        self.assertEqual(lines, ["True True True"] * 3 + ["True True", "True", "True"])

    def test_operator(self):
        lines = run(
            """
            options = {"sigma": 4, "channel_sigma": 30, "operator": "exact"}
            here, there = (dcrf.Operator(image, device=device, **options) for device in ("cpu", "cuda:1"))
            print(there.device, there.kind)
            values = np.random.default_rng(1).random(image.shape)
            print(abs(here @ values - there @ values).max() < 1e-6, abs(here.row_sums() - there.row_sums()).max() < 1e-5,
                  abs(here.diagonal() - there.diagonal()).max() < 1e-6)
            """
        )
        self.assertEqual(lines, ["cuda:1 exact", "True True True"])

    def test_models_keep_their_device(self):
        lines = run(
            """
            model = dcrf.Model(image, unary=unary, device="cuda:1", **exact)
            print(model.device, "; on cuda:1>" in repr(model))
            os.environ["DCRF_DEVICE"] = "cpu"
            print(copy.copy(model).device, pickle.loads(pickle.dumps(model)).device)
            before = model.solve().energy
            model.set_sigma(0, 1.0)
            print(model.device, before != model.solve().energy)

            class OfTorch:
                def __str__(self):
                    return "cuda:1"
            print(dcrf.Model(unary=unary, device=OfTorch()).device)
            """,
            DCRF_DEVICE="cuda",
        )
        self.assertEqual(lines, ["cuda:1 True", "cuda:1 cuda:1", "cuda:1 True", "cuda:1"])

    def test_the_environment_is_the_default(self):
        lines = run(
            """
            print(dcrf.Model(unary=unary).device, dcrf.Operator(shape=(4, 5), sigma=2).device,
                  dcrf.Model(unary=unary, device="cpu").device)
            """,
            DCRF_DEVICE="cuda:1",
        )
        self.assertEqual(lines, ["cuda:1 cuda:1 cpu"])

    def test_certificates_are_checked_on_the_cpu(self):
        lines = run(
            """
            model = dcrf.Model(image, unary=unary, device="cuda", **exact)
            result = model.solve("lp", certificate=True)
            os.environ["FAKE_FAILURE"] = "operator_new"
            print(model.verify(result.certificate).lower_bound <= result.energy)
            print(dcrf.verify(image, unary=unary, certificate=result.certificate, device="cpu", **exact).is_exact)
            """
        )
        self.assertEqual(lines, ["True", "True"])

    def test_many_are_spread(self):
        program = """
            from dcrf import _once
            used, make = [], _once.Model
            def watched(*arguments, **options):
                used.append(options.get("device"))
                return make(*arguments, **options)
            _once.Model = watched
            problems = [dict(zip(("image", "unary"), scene(seed=seed)), **exact) for seed in range(5)]
            problems[2]["device"] = "cpu"
            there = dcrf.solve_many(problems, device="cuda", threads=2)
            print(sorted(used))
            here = dcrf.solve_many(problems)
            print(all((a.labels == b.labels).all() for a, b in zip(here, there)))
        """
        lines = run(program)
        self.assertEqual(lines, ["['cpu', 'cuda:0', 'cuda:0', 'cuda:1', 'cuda:1']", "True"])
        lines = run(program, FAKE_DEVICES="1")
        self.assertEqual(lines, ["['cpu', 'cuda', 'cuda', 'cuda', 'cuda']", "True"])

    def test_failures(self):
        for entry in ("open", "operator_new", "mean_field_step", "disagreements"):
            lines = run('print(complaint(dcrf.solve, image, unary=unary, device="cuda"))', FAKE_FAILURE=entry)
            self.assertRegex(lines[0], f"^DeviceError: .*the fake device refuses {entry}")
        lines = run('print(complaint(dcrf.Operator, shape=(100, 100), sigma=3, device="cuda"))')
        self.assertRegex(lines[0], "^DeviceError: device=cuda: the fake device is full: .* 10000$")

    def test_errors_can_be_pickled(self):
        error = pickle.loads(pickle.dumps(dcrf.DeviceError("gone")))
        self.assertIs(type(error), dcrf.DeviceError)


class DropIn(unittest.TestCase):
    """dcrf.pydensecrf. The fake device has the Gaussian itself for the lattice, so its numbers are near those of
    the CPU only; that they are the right ones is a matter for tests/device/test_densecrf_device.c."""

    PROGRAM = """
        import dcrf.pydensecrf.densecrf as densecrf
        energies = np.ascontiguousarray(np.moveaxis(unary, -1, 0).reshape(3, -1), np.float32)

        def program(*kernels, **keywords):
            crf = densecrf.DenseCRF2D(8, 6, 3, **keywords)
            crf.setUnaryEnergy(energies)
            crf.addPairwiseGaussian(sxy=2, compat=0.4)
            crf.addPairwiseBilateral(sxy=4, srgb=30, rgbim=image, compat=np.eye(3, dtype=np.float32) * -0.5)
            for kernel in kernels:
                crf.addPairwiseEnergy(kernel, compat=0.3)
            return crf

        def near(one, other):
            return abs(np.array(one.inference(4)) - np.array(other.inference(4))).max() < 0.1
    """

    def check(self, program, expected, **environment):
        self.assertEqual(run(textwrap.dedent(self.PROGRAM) + textwrap.dedent(program), **environment), expected)

    def test_unmodified_programs_use_the_environment(self):
        program = """
            crf = program()
            Q = np.array(crf.inference(5))
            print(crf.device, Q.shape, Q.dtype, abs(Q.sum(0) - 1).max() < 1e-5)
            step, tmp1, tmp2 = crf.startInference()
            for _ in range(5):
                crf.stepInference(step, tmp1, tmp2)
            print(abs(step - Q).max() < 1e-6, crf.klDivergence(Q) <= crf.klDivergence(crf.inference(0)))
            print(near(crf, program(device="cpu")), program(device="cpu").device)
        """
        self.check(program, ["cuda:1 (3, 48) float32 True", "True True", "True cpu"], DCRF_DEVICE="cuda:1")
        self.check(program, ["cpu (3, 48) float32 True", "True True", "True cpu"])

    def test_calls_and_keywords_come_first(self):
        self.check(
            """
            densecrf.set_device("cuda:1")
            print(program().device, program(device="cuda").device, densecrf.DenseCRF(48, 3).device)
            densecrf.set_device("cpu")
            print(program().device, program(device="cuda:1").device)
            densecrf.set_device(None)
            print(program().device)
            """,
            ["cuda:1 cuda:0 cuda:1", "cpu cuda:1", "cuda:0"],
            DCRF_DEVICE="cuda",
        )

    def test_what_the_device_cannot_have_is_done_here(self):
        """Seven features are not on the fake device: the whole model comes back to the CPU, byte by byte."""
        self.check(
            """
            seven = np.random.default_rng(3).random((7, 48)).astype(np.float32)
            there, here = program(seven), program(seven, device="cpu")
            print(there.device, np.array(there.inference(5)).tobytes() == np.array(here.inference(5)).tobytes())
            print(densecrf.DenseCRF(48, 600).device)
            """,
            ["cpu True", "cpu"],
            DCRF_DEVICE="cuda",
        )

    def test_failures_say_who_asked(self):
        program = """
            print(complaint(program))
            print(complaint(program, device="cuda:7"))
            print(program(device="cpu").device)
            densecrf.set_device("gpu")
            print(complaint(program))
        """
        lines = run(textwrap.dedent(self.PROGRAM) + textwrap.dedent(program), NOWHERE, DCRF_DEVICE="cuda")
        self.assertRegex(lines[0], f"^DeviceError: DCRF_DEVICE=cuda: DCRF_CUDA_LIBRARY: {NOWHERE}: ")
        self.assertRegex(lines[1], f"^DeviceError: device=cuda:7: DCRF_CUDA_LIBRARY: {NOWHERE}: ")
        self.assertEqual(lines[2], "cpu")
        self.assertRegex(lines[3], "^ValueError: device=gpu: 'gpu' is not a device")
        for entry in ("compat.make", "compat.set_unary", "compat.operator_new", "compat.run"):
            origin = "DCRF_DEVICE=cuda: " if entry == "compat.make" else ""  # the object itself
            self.check(
                "print(complaint(lambda: program().inference(2)))",
                [f"DeviceError: {origin}the fake device refuses {entry}"],
                DCRF_DEVICE="cuda",
                FAKE_FAILURE=entry,
            )


class OnGpu:
    """As cupy's: it knows where it is, and does not come by itself."""

    __cuda_array_interface__ = {"shape": (2, 4, 5), "typestr": "<f4", "data": (0, False), "version": 3}

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class OfNumba:
    """Without __array__ at all."""

    __cuda_array_interface__ = OnGpu.__cuda_array_interface__


class OfTorch:
    """With DLPack; its values have to be detached first."""

    is_detached = False

    def detach(self):
        self.is_detached = True
        return self

    @property
    def __cuda_array_interface__(self):
        if not self.is_detached:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        return OnGpu.__cuda_array_interface__

    def __array__(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")


class OfDlpackOnGpu:
    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **_):
        raise BufferError("not for the CPU")


class OfDlpack:
    """Nothing but DLPack, in the memory of the host."""

    def __init__(self, values):
        self.values = values

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)


class Arrays(unittest.TestCase):
    def test_arrays_on_a_gpu_are_refused_with_advice(self):
        for kind in (OnGpu, OfNumba, OfTorch, OfDlpackOnGpu):
            with self.assertRaisesRegex(TypeError, r"^unary is on a GPU.*\.cpu\(\) in torch"):
                dcrf.solve(unary=kind())
            with self.assertRaisesRegex(TypeError, r"^the image is on a GPU"):
                dcrf.Model(kind(), unary=np.zeros((2, 4, 5)))

    def test_what_numpy_can_take_is_taken(self):
        """An array on a GPU that comes by itself (as jax's do), and one that has only DLPack."""
        values = np.random.default_rng(0).random((2, 4, 5)).astype(np.float32)
        expected = dcrf.solve(unary=values).energy

        class OfJax(OnGpu):
            def __array__(self, *_, **__):
                return values

        self.assertEqual(dcrf.solve(unary=OfJax()).energy, expected)
        self.assertEqual(dcrf.solve(unary=OfDlpack(values)).energy, expected)

    def test_dlpack_that_numpy_cannot_read(self):
        class OfBits(OfDlpack):
            def __dlpack__(self, **_):
                raise BufferError("no bits")

        with self.assertRaisesRegex(TypeError, "^unary cannot be read: no bits$"):
            dcrf.solve(unary=OfBits(np.zeros(3)))

    def test_other_complaints_stay(self):
        class Broken:
            def __array__(self, *_, **__):
                raise ValueError("broken")

        with self.assertRaisesRegex(ValueError, "^broken$"):
            dcrf.solve(unary=Broken())
        with self.assertRaisesRegex(TypeError, "elements of type"):
            dcrf.solve(unary="nonsense")


if __name__ == "__main__":
    unittest.main()
