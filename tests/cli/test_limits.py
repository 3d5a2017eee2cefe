"""Limits and signals: what a run does when it is told to end, and when it is not."""

import base64
import json
import os
import resource
import signal
import struct
import subprocess
import unittest

import case
import formats

SIDE = 150


class Limits(case.Case):
    def setUp(self):
        super().setUp()
        rows = [[((7 * x) % 256, (5 * y) % 256, (3 * x + 11 * y) % 256) for x in range(SIDE)] for y in range(SIDE)]
        unary = [((3 * k + k // 97) % 16) / 8 for k in range(SIDE * SIDE * 2)]
        self.large = self.write("large.png", formats.png(rows))
        self.model = (self.large, "--unary", self.write("large.npy", formats.npy(unary, (SIDE, SIDE, 2))))

    # A pass over all pairs takes longer than these limits on any machine.
    def test_exact_operators_obey(self):
        for more in (("solve", *self.model, "-m", "mf"), ("solve", *self.model, "-m", "lp"),
                     ("certify", *self.model, "--labels", self.write("l.png", formats.number_png([[0] * SIDE] * SIDE)))):
            self.bad(self.large, "the time limit ended while", *more, "--operator", "exact", "--bilateral", "60,200", "-t", "0.01",
                     "--threads", "1", status=1)

    # The clock begins with the command, so that the time of the first step is over.
    def test_set_up_obeys(self):
        for cliques in ("meanshift", "slic"):
            self.bad(self.large, "the time limit ended while finding superpixels", "solve", *self.model, "--cliques", cliques, "-t", "0.001",
                     "--threads", "1", status=1)

    # What the LP proves of its own accord takes no memory: where a run has enough for a labelling, so has one with more.
    def test_memory_of_the_lp(self):
        if os.environ.get("DCRF_TEST_BUILD"):
            self.skipTest("skipped: sanitizers reserve address space")

        def has_enough(kilobytes):
            done = self.run_dcrf("solve", *self.model, "-m", "lp", "-n", "2", "--no-polish", "--threads", "1", "-o", "l.png",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10, kilobytes << 10)))
            self.assertNotIn("proof", done.stderr)
            return done.returncode == 0

        too_little, enough = 8 << 10, 512 << 10
        self.assertTrue(has_enough(enough))
        while enough - too_little > 128:
            middle = (enough + too_little) // 2
            enough, too_little = (middle, too_little) if has_enough(middle) else (enough, middle)
        # Set-up takes little more than the solver: within a megabyte the pieces that it gave back decide what fits.
        for more in range(1536, 7168, 512):
            self.assertTrue(has_enough(enough + more), more)

    def run_and_signal(self, handler, *more):
        """What a run says that got SIGINT at its first iteration."""
        run = subprocess.Popen([case.COMMAND, "solve", *self.model, "-m", "lp", "-n", "20", "--gap", "1e-9", "-v", "--no-polish", "--threads", "1",
                                "--json", "found.json", "-o", "found.png", *more], cwd=self.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, handler))
        for line in run.stderr:
            if b"iteration 1:" in line:
                run.send_signal(signal.SIGINT)
                break
        said = run.stderr.read()
        self.assertEqual(run.wait(), 0, said)
        run.stderr.close()
        return json.loads(self.read("found.json"))

    def test_ignored_signals_stay_ignored(self):
        self.assertEqual(self.run_and_signal(signal.SIG_DFL)["stop"], "cancelled")
        ignored = self.run_and_signal(signal.SIG_IGN)
        self.assertNotEqual(ignored["stop"], "cancelled")
        self.assertGreater(ignored["iterations"], 1)

    def effort(self, name):
        """How much zlib has tried, as a picture's first compressed bytes say: 0 is least, 2 usual."""
        data = self.read(name)
        return data[data.index(b"IDAT") + 5] >> 6

    # That the pixels are the same is tested by test_cli_io.
    def test_pictures_of_runs_that_end_early(self):
        pictures = ("--overlay", "o.png", "--boundaries", "b.png", "--confidence-map", "c.png", "--proof", "p.png")
        self.assertEqual(self.run_and_signal(signal.SIG_DFL, "-n", "1000", *pictures)["stop"], "cancelled")
        files = ("found.png", *pictures[1::2])
        self.assertEqual([self.effort(name) for name in files], [0] * 5)
        self.run_and_signal(signal.SIG_IGN, "-n", "1", *pictures)
        self.assertEqual([self.effort(name) for name in files], [2] * 5)

    # A report is still written then, of what is known, and with pictures of few pixels.
    def test_reports_of_runs_that_end_early(self):
        width, height = 704, 448
        prior = [[y // 7 % 2] * width for y in range(height)]
        grey = [[200 * row[0]] * width for row in prior]
        self.model = (self.write("wide.png", formats.number_png(grey)), "--labels-prior", self.write("p.png", formats.number_png(prior)))
        self.assertEqual(self.run_and_signal(signal.SIG_DFL, "-n", "1000", "--report", "r.html")["stop"], "cancelled")
        page = self.read("r.html").decode()
        self.assertIn("There was no time to measure what the kernels do.", page)
        self.assertIn("There was no time to try other strengths.", page)
        self.assertIn("One of 2 rows and columns, as there was no time for more.", page)
        pictures = [base64.b64decode(text[:64]) for text in page.split("data:image/png;base64,")[1:]]
        self.assertEqual({struct.unpack(">II", picture[16:24]) for picture in pictures}, {(width // 2, height // 2)})


if __name__ == "__main__":
    unittest.main()
