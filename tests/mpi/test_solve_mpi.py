"""test_solve_mpi.py DCRF DCRF_MPI: an image in tiles by four ranks, and what is left when something goes wrong."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))

import formats
import mpi
import pictures
import volumes
from mpi import read

DCRF, DCRF_MPI = map(os.path.abspath, sys.argv[1:3])
RANKS, RANK_TO_HURT = 4, 2
BAD_INPUT, FAILURE = 2, 1
WIDTH, HEIGHT = 64, 46
# An overlap of 8 pixels, so that windows of 28 have tiles of 12 at most.
KERNELS = ("--spatial", "1.5", "--bilateral", "4,20", "--strength", "2")
TILES = ("--tile", "28")
ENDLESS = ("-n", "1000000", "-m", "lp", "--gap", "1e-300", "-v")
BY_MESSAGES = mpi.by_messages()
OUTPUTS = (("-o", "labels.png"), ("--confidence-map", "confidence.npy"), ("--marginals", "marginals.npy"))


def scene(pixels):
    chance = random.Random(5)
    colours = [tuple(chance.randrange(80, 130) + 40 * (k // 9 % 2) for _ in range(3)) for k in range(pixels)]
    return colours, [chance.random() + (k // 9 + label) % 2 for k in range(pixels) for label in range(2)]


def without_times(text):
    def kept(value):
        if isinstance(value, dict):
            return {name: kept(part) for name, part in value.items() if not name.endswith("_s")}
        return value
    return kept(json.loads(text))


class Solve(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        colours, self.energies = scene(WIDTH * HEIGHT)
        rows = [colours[y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)]
        self.png = self.write("image.png", formats.png(rows))
        self.ppm = self.write("image.ppm", pictures.pnm(rows, 6))
        self.unary = self.write("unary.npy", formats.npy(self.energies, (HEIGHT, WIDTH, 2)))

    def path(self, *name):
        return os.path.join(self.folder, *name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def command(self, program, image, *more, tiles=TILES, unary=None):
        return [program, "solve", image, "--unary", unary or self.unary, "--unary-kind", "energies", *KERNELS,
                *tiles, "--threads", "1", *more]

    def outputs(self, folder, names):
        os.makedirs(self.path(folder), exist_ok=True)
        return [word for option, name in names for word in (option, self.path(folder, name))]

    def temporaries(self, folder=""):
        return [name for name in os.listdir(self.path(folder)) if name.startswith(".")]

    def check_same(self, image, *more, names=OUTPUTS, options=(), tiles=TILES, unary=None):
        """Four ranks write the bytes of one process, and leave nothing else."""
        names = (*names, ("--json", "run.json"))
        alone = self.command(DCRF, image, *more, *self.outputs("alone", names), tiles=tiles, unary=unary)
        shared = self.command(DCRF_MPI, image, *more, *self.outputs("shared", names), tiles=tiles, unary=unary)
        text = subprocess.run(alone, check=True, capture_output=True, text=True).stdout
        run = mpi.mpirun(RANKS, *shared, options=options)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout.count("energy"), text.count("energy"), run.stdout)
        self.assertEqual(sorted(os.listdir(self.path("alone"))), sorted(os.listdir(self.path("shared"))))
        for _, name in names[:-1]:
            self.assertEqual(read(self.path("shared", name)), read(self.path("alone", name)), name)
        found, wanted = (without_times(read(self.path(folder, "run.json"))) for folder in ("shared", "alone"))
        for settings in (found["settings"], wanted["settings"]):
            for option, _ in names:
                settings.pop(option.strip("-"), None)
            settings.pop("output", None)
        self.assertEqual(found, wanted)
        self.assertGreater(wanted["tiles"]["count"], RANKS)

    def check_refused(self, run, status, *texts):
        """One message, no outputs, no temporary files."""
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertEqual(run.stderr.count("dcrf: "), 1, run.stderr)
        for text in texts:
            self.assertIn(text, run.stderr)
        self.assertEqual((run.stdout, os.listdir(self.path("out"))), ("", []))

    # ---- the same bytes

    def test_same_as_one_process(self):
        self.check_same(self.png)

    def test_same_by_messages(self):
        self.check_same(self.ppm, "-m", "lp", "-n", "20", options=BY_MESSAGES)

    def test_same_without_files_of_pixels(self):
        self.check_same(self.ppm, names=())

    def test_same_volume(self):
        size = (20, 16, 9)
        colours, energies = scene(20 * 16 * 9)
        image = self.write("image.nii", volumes.nifti([c[0] for c in colours], size, volumes.I16))
        unary = self.write("volume.npy", formats.npy(energies, (9, 16, 20, 2)))
        self.check_same(image, names=(("-o", "labels.nii.gz"), ("--marginals", "m.nii.gz")), tiles=("--tile", "18"),
                        unary=unary)

    def test_whole_is_solved_by_rank_0(self):
        for more in ((), ("--memory", "4G")):
            run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.png, *more, tiles=()))
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertEqual(run.stdout.count("rank 0 has solved the image as a whole"), 1, run.stdout)

    # ---- faults

    def test_a_tile_that_cannot_be_read(self):
        broken = list(self.energies)
        broken[2 * (44 * WIDTH + 62)] = float("nan")
        unary = self.write("nan.npy", formats.npy(broken, (HEIGHT, WIDTH, 2)))
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.png, *self.outputs("out", OUTPUTS), unary=unary))
        self.check_refused(run, BAD_INPUT, "nan.npy: the unary array holds nan at x = 62, y = 44")

    def test_a_folder_that_is_full(self):
        """For all ranks but rank 0: which of them has a tile is chance, that one has is not."""
        command = self.command(DCRF_MPI, self.ppm, *self.outputs("out", OUTPUTS))
        limited = ["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', *command]
        run = mpi.mpirun(RANKS, *mpi.at_rank(0, command, limited), options=BY_MESSAGES)
        self.check_refused(run, FAILURE, "a tile cannot be stored in a temporary file", "(at rank ")

    def test_a_folder_that_one_rank_does_not_see(self):
        os.makedirs(self.path("out"))
        os.makedirs(self.path("elsewhere"))
        command = self.command(DCRF_MPI, self.png, "-o", "labels.png")
        elsewhere = ["env", "-C", self.path("elsewhere"), *command]
        run = mpi.mpirun(3, *mpi.at_rank(2, elsewhere, command), options=("-wdir", self.path("out")))
        self.check_refused(run, FAILURE, "all ranks must see the folder", "(at rank 2, on ")

    def test_an_output_that_cannot_be_written(self):
        os.symlink("/dev/full", self.path("labels.npy"))
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.png, "-o", self.path("labels.npy"),
                                              *self.outputs("out", [("--json", "run.json")])))
        self.check_refused(run, FAILURE, "labels.npy", "cannot write")
        self.assertEqual(self.temporaries(), [])

    def test_options_that_tiles_cannot_do(self):
        run = mpi.mpirun(RANKS, *self.command(DCRF_MPI, self.png, *self.outputs("out", [("--overlay", "o.png")])))
        self.check_refused(run, BAD_INPUT, "--overlay", "in tiles")

    # ---- told to end

    def begin(self, *options, work=ENDLESS):
        run = mpi.start(RANKS, *self.command(DCRF_MPI, self.png, *work, *self.outputs("out", OUTPUTS)),
                        options=options)
        self.addCleanup(run.terminate)
        self.assertTrue(run.stderr.readline())  # rank 0 has begun
        return run, mpi.pids_by_rank(run)

    def check_stopped(self, run):
        done = mpi.end(run)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("interrupted", done.stdout)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["confidence.npy", "labels.png", "marginals.npy"])
        self.assertEqual(formats.read_png(read(self.path("out", "labels.png")))[:2], (WIDTH, HEIGHT))
        return done.stdout

    def test_all_ranks_are_told_to_end(self):
        run, pids = self.begin()
        for pid in pids.values():
            os.kill(pid, signal.SIGTERM)
        self.check_stopped(run)

    def test_one_rank_is_told_to_end(self):
        """The others end their tiles in hand; it gives the rest the labels of the unaries, which takes no time."""
        run, pids = self.begin(work=("-n", "200", *ENDLESS[2:]))
        os.kill(pids[RANK_TO_HURT], signal.SIGTERM)
        self.assertIn("tiles are solved; the others have the labels of the unaries", self.check_stopped(run))

    def test_a_rank_is_killed(self):
        run, pids = self.begin("--mca", "odls_base_sigkill_timeout", "0")
        os.kill(pids[RANK_TO_HURT], signal.SIGKILL)
        self.assertNotEqual(mpi.end(run).returncode, 0)
        self.assertEqual([name for name in os.listdir(self.path("out")) if not name.startswith(".")], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
