"""test_tune_mpi.py DCRF DCRF_MPI: a search for parameters by four ranks."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import mpi
from mpi import read
from stripes import make_dataset

DCRF, DCRF_MPI = map(os.path.abspath, sys.argv[1:3])
RANKS, RANK_TO_KILL, BUDGET = 4, 1, 40
FILES = ("log.csv", "best.json", "tune.md", "search.svg")
BAD_INPUT = 2


class Tune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.dataset, cls.alone = (os.path.join(folder.name, name) for name in ("data", "alone"))
        make_dataset(cls.dataset, 70, 50)
        subprocess.run(cls.command(DCRF, cls.dataset, cls.alone), check=True,
                       stdout=subprocess.DEVNULL)

    @staticmethod
    def command(program, dataset, out):
        return [program, "tune", dataset, "--out", out, "--method", "mf5", "--budget", str(BUDGET),
                "--jobs", "1", "--threads", "1"]

    def out(self):
        return os.path.join(self.folder, self.id())

    def evaluations(self):
        log = os.path.join(self.out(), "log.csv")
        return read(log).count(b"\n") - 1 if os.path.exists(log) else 0

    def check_run(self):
        """To the end, and the same as in one process."""
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.dataset, self.out()))
        self.assertEqual(run.returncode, 0, run.stderr)
        for name in FILES:
            self.assertEqual(read(self.out(), name), read(self.alone, name), name)

    def test_same_as_one_process(self):
        self.check_run()

    def test_a_rank_is_killed(self):
        run = mpi.start(RANKS, *self.command(DCRF_MPI, self.dataset, self.out()),
                        options=("--mca", "odls_base_sigkill_timeout", "0"))
        self.addCleanup(run.terminate)
        while run.poll() is None and self.evaluations() < 3:
            time.sleep(0.01)
        self.assertIsNone(run.poll(), "the run is too short for this test")
        os.kill(mpi.pids_by_rank(run)[RANK_TO_KILL], signal.SIGKILL)
        self.assertNotEqual(mpi.end(run).returncode, 0)
        self.assertTrue(3 <= self.evaluations() < BUDGET, self.evaluations())
        self.check_run()

    def test_an_image_that_cannot_be_read(self):
        dataset = self.out() + "-data"
        make_dataset(dataset, 12, 10)
        os.truncate(os.path.join(dataset, "images", "02.png"), 60)
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, dataset, self.out()))
        self.assertEqual(run.returncode, BAD_INPUT, run.stderr)
        self.assertEqual(run.stderr.count("dcrf: "), 1, run.stderr)
        self.assertIn("02.png", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
