"""Eight Python threads at once give the bytes of one; Ctrl-C ends a run; forked processes work."""

import os
import signal
import threading
import time
import unittest

import numpy as np

import dcrf
from dcrf.pydensecrf import densecrf


def compatible(seed):
    rng = np.random.default_rng(seed)
    crf = densecrf.DenseCRF2D(40, 30, 5)
    crf.setUnaryEnergy(rng.random((5, 1200), np.float32) * 3)
    crf.addPairwiseGaussian(3, 3)
    crf.addPairwiseBilateral(30, 20, rng.integers(0, 256, (30, 40, 3)).astype(np.uint8) // 4, 5)
    return crf.inference(5).tobytes()


def solved(seed):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (30, 40, 3)).astype(np.uint8) // 4
    result = dcrf.solve(image, unary=rng.random((5, 30, 40)) * 3, method="mf")
    return result.labels.tobytes() + result.marginals.tobytes()


class Threads(unittest.TestCase):
    def test_same_bytes(self):
        for work in (compatible, solved):
            expected = [work(seed) for seed in range(3)]
            failures = []

            def run(shift, work=work, expected=expected, failures=failures):
                for turn in range(6):
                    seed = (turn + shift) % 3
                    if work(seed) != expected[seed]:
                        failures.append((shift, turn))

            threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_lock_is_released(self):
        """While one thread is inside the library, another runs Python."""
        rng = np.random.default_rng(0)
        crf = densecrf.DenseCRF2D(200, 200, 21)
        crf.setUnaryEnergy(rng.random((21, 40000), np.float32))
        crf.addPairwiseGaussian(3, 3)
        inside, ticks = threading.Event(), []
        for iterations in (20, 200, 2000):  # on a busy machine this thread may have to wait
            thread = threading.Thread(target=lambda: (inside.set(), crf.inference(iterations), inside.clear()))
            thread.start()
            while thread.is_alive():
                ticks.append(inside.is_set())
                time.sleep(0.001)
            if sum(ticks) > 20:
                break
        self.assertGreater(sum(ticks), 20)

    def test_one_object_two_threads(self):
        crf = densecrf.DenseCRF2D(100, 100, 21)
        crf.addPairwiseGaussian(3, 3)
        outcomes = []

        def run():
            try:
                crf.inference(20)
                outcomes.append("done")
            except RuntimeError:
                outcomes.append("refused")

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(outcomes), 4)
        self.assertIn("done", outcomes)

    def test_interrupt(self):
        crf = densecrf.DenseCRF2D(200, 200, 21)
        crf.addPairwiseGaussian(3, 3)
        # A shell that runs this in the background has it ignore Ctrl-C, and Python keeps to that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        start_s = time.process_time()
        crf.inference(10)
        ten_s = time.process_time() - start_s
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        start_s = time.process_time()
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            crf.inference(10**4)
        # By CPU time, which neighbours do not change; all of it takes 1000 times as much as ten.
        self.assertLess(time.process_time() - start_s, 500 * ten_s)
        self.assertEqual(crf.inference(1).shape, (21, 40000))

    def test_fork(self):
        expected = compatible(0)
        child = os.fork()
        if child == 0:
            os._exit(0 if compatible(0) == expected else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


class Unwanted(unittest.TestCase):
    """What solve_many asks its solvers while they work: it must not take until the next iteration."""

    def test_asked_before_the_first_iteration(self):
        rng = np.random.default_rng(0)
        model = dcrf.Model(rng.integers(0, 255, (20, 30, 3)).astype(np.uint8), unary=rng.random((20, 30, 4)), threads=1)
        for method in ("mf", "qp", "lp"):
            moments = []
            result = model._solve(method, {}, progress=moments.append, is_unwanted=lambda: True)
            self.assertEqual((result.stop, moments), ("cancelled", []))
            asked = []
            model._solve(method, {}, is_unwanted=lambda: asked.append(1))
            self.assertGreater(len(asked), 2)

        def fail():
            raise KeyError("on purpose")

        with self.assertRaisesRegex(KeyError, "on purpose"):
            model._solve("lp", {}, is_unwanted=fail)

    def test_closing_the_generator_stops_the_rest(self):
        """Where it did not, this would take hours."""
        rng = np.random.default_rng(0)
        problems = ({"unary": rng.random((2, 60, 80)), "iterations": 1 if k == 0 else 10**8, "gap": 1e-15,
                     "time_limit_s": 0 if k == 0 else 10000} for k in range(5))
        each = dcrf.solve_each(problems, threads=2, method="lp", marginals=False)
        next(each)
        each.close()
        self.assertEqual(list(each), [])


if __name__ == "__main__":
    unittest.main()
