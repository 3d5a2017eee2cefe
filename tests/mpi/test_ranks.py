"""test_ranks.py TEST_RANKS DCRF_MPI: the C test of the ranks, and how the program ends, under mpirun."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))

import formats
from mpi import by_messages, mpirun

TEST_RANKS, DCRF = map(os.path.abspath, sys.argv[1:3])
RANKS = 4


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Ranks(Case):
    def check(self, count, *options):
        run = mpirun(count, TEST_RANKS, options=options, RANKS_WANTED=count,
                     RANKS_END_FILE=os.path.join(self.folder, "end"))
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_by_shared_memory(self):
        self.check(RANKS)

    def test_by_messages(self):
        self.check(RANKS, *by_messages())

    def test_one_rank(self):
        self.check(1)

    def test_abort_ends_all(self):
        run = mpirun(RANKS, TEST_RANKS, "abort", RANKS_WANTED=RANKS)
        self.assertEqual(run.returncode, 3, run.stderr)


class Program(Case):
    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_prints_once(self):
        for argument in ("--version", "--help", "presets"):
            run = mpirun(RANKS, DCRF, argument)
            once = mpirun(1, DCRF, argument)
            self.assertEqual((run.returncode, run.stdout), (0, once.stdout), run.stderr)

    def test_a_problem_is_printed_once(self):
        for arguments in (["sovle"], ["solve", "--colour", "3"], ["solve", "absent.png"]):
            run = mpirun(RANKS, DCRF, *arguments)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertEqual(run.stderr.count("dcrf: "), 1, run.stderr)

    def test_rank_0_solves(self):
        image = self.write("image.png", formats.png([[(9 * x, 7 * y, 50) for x in range(8)]
                                                     for y in range(6)]))
        prior = self.write("prior.png", formats.number_png([[x // 4 for x in range(8)]] * 6))
        labels = os.path.join(self.folder, "labels.png")
        run = mpirun(RANKS, DCRF, "solve", image, "--labels-prior", prior, "--confidence", "0.7",
                     "-o", labels)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count("energy"), 1, run.stdout)
        with open(labels, "rb") as file:
            self.assertEqual(formats.read_png(file.read())[:2], (8, 6))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
