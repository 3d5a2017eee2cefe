"""test_batch_mpi.py DCRF DCRF_MPI: a data set by four ranks, and what is left when one of them dies."""

import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import mpi
from mpi import read
from stripes import IMAGES, make_dataset

DCRF, DCRF_MPI = map(os.path.abspath, sys.argv[1:3])
RANKS, RANK_TO_KILL = 4, 2
SUMMARIES = ("summary.csv", "summary.json", "summary.md")
INTERRUPTED, PARTIAL, BAD_INPUT = 130, 3, 2


def results(out):
    return glob.glob(os.path.join(out, "results", "*", "*.json"))


def temporaries(out):
    return [p for p in glob.glob(os.path.join(out, "**", ".*"), recursive=True)
            if os.path.basename(p) != ".lock"]


class Batch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.small, cls.large = (os.path.join(folder.name, name) for name in ("small", "large"))
        make_dataset(cls.small, 40, 30)
        make_dataset(cls.large, 120, 80)
        cls.small_alone, cls.large_alone = (cls.run_alone(d) for d in (cls.small, cls.large))

    @staticmethod
    def command(program, dataset, out):
        return [program, "batch", dataset, "--out", out, "--methods", "mf5,lp", "--jobs", "1",
                "--threads", "1"]

    @classmethod
    def run_alone(cls, dataset):
        out = dataset + "-alone"
        subprocess.run(cls.command(DCRF, dataset, out), check=True, stdout=subprocess.DEVNULL)
        return out

    def out(self):
        return os.path.join(self.folder, self.id())

    def check_same(self, out, alone):
        for name in SUMMARIES:
            self.assertEqual(read(out, name), read(alone, name), name)
        for path in glob.glob(os.path.join(alone, "results", "*", "*.png")):
            self.assertEqual(read(out, os.path.relpath(path, alone)), read(path), path)

    def check_ends(self, run, status, *texts):
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertEqual(run.stderr.count("dcrf: "), 1, run.stderr)
        for text in texts:
            self.assertIn(text, run.stderr)

    def check_rerun(self, out):
        """The results that are there stay, and the others come."""
        kept = {path: os.stat(path).st_mtime_ns for path in results(out)}
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.large, out))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check_same(out, self.large_alone)
        self.assertEqual(kept, {path: os.stat(path).st_mtime_ns for path in kept})
        self.assertEqual(temporaries(out), [])
        return len(kept)

    def start(self, out, *options):
        """Start and come back in the midst of the run: when some results are there."""
        run = mpi.start(RANKS, *self.command(DCRF_MPI, self.large, out), options=options)
        self.addCleanup(run.terminate)
        while run.poll() is None and len(results(out)) < RANKS:
            time.sleep(0.01)
        self.assertIsNone(run.poll(), "the run is too short for this test")
        return run

    def test_same_as_one_process(self):
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.small, self.out()))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count("report.html shows more"), 1, run.stdout)
        self.check_same(self.out(), self.small_alone)

    def test_a_rank_is_killed(self):
        # Without the time that survivors usually have.
        run = self.start(self.out(), "--mca", "odls_base_sigkill_timeout", "0")
        os.kill(mpi.pids_by_rank(run)[RANK_TO_KILL], signal.SIGKILL)
        self.assertNotEqual(mpi.end(run).returncode, 0)
        kept = self.check_rerun(self.out())
        self.assertTrue(RANKS <= kept < 2 * IMAGES, kept)

    def test_survivors_finish_their_images(self):
        """They go on for a second, then have another one for the images in flight."""
        run = self.start(self.out(), "--mca", "odls_base_sigkill_timeout", "1")
        pids = mpi.pids_by_rank(run)
        for pid in pids.values():
            os.kill(pid, signal.SIGSTOP)
        before = len(results(self.out()))
        os.kill(pids.pop(RANK_TO_KILL), signal.SIGKILL)
        for pid in pids.values():
            os.kill(pid, signal.SIGCONT)
        self.assertNotEqual(mpi.end(run).returncode, 0)
        self.assertGreaterEqual(len(results(self.out())), before + RANKS - 1)
        self.check_rerun(self.out())

    def test_all_ranks_are_told_to_end(self):
        """As Slurm does when the time is up."""
        run = self.start(self.out())
        for pid in mpi.pids_by_rank(run).values():
            os.kill(pid, signal.SIGTERM)
        self.check_ends(mpi.end(run), INTERRUPTED, "interrupted; what is done is kept")
        self.assertEqual(temporaries(self.out()), [])
        self.check_rerun(self.out())

    def test_an_image_that_cannot_be_read(self):
        dataset = self.out() + "-data"
        make_dataset(dataset, 12, 10)
        os.truncate(os.path.join(dataset, "images", "05.png"), 60)
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, dataset, self.out()))
        self.check_ends(run, PARTIAL, "1 of %d images were skipped" % IMAGES)
        self.assertIn(b"05.png", read(self.out(), "failures", "05.txt"))

    def test_a_folder_that_one_rank_does_not_see(self):
        here = self.command(DCRF_MPI, self.small, self.out())
        there = self.command(DCRF_MPI, self.small + "-absent", self.out())
        run = mpi.mpirun(3, *mpi.at_rank(2, there, here))
        self.check_ends(run, BAD_INPUT, "absent", "(at rank 2, on ")
        self.assertFalse(os.path.exists(self.out()))

    def test_a_folder_that_cannot_be_made(self):
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.small, self.small + "/dataset.json/out"))
        self.check_ends(run, 1, "cannot be made")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
