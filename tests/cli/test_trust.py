"""Nothing of the user's is deleted, adopted or lost: folders that are not dcrf's, results that were damaged,
signals while files are written."""

import gzip
import os
import resource
import signal
import subprocess
import time
import unittest

import case
import datasets
import torture
import volumes
from case import Case

TREASURES = [".env.docker", ".bashrc.backup", ".notes.txt.abcdef", "results/.key.backup", "notes.txt"]


class FolderCase(Case):
    def setUp(self):
        super().setUp()
        datasets.make(self.path("data"), count=4)

    def batch(self, out="out"):
        return ["batch", "data", "--methods", "mf5", "--out", out, "--curves", "0", "--pictures", "1", "-q"]

    def tune(self, out="out", *more):
        return ["tune", "data", "--method", "mf3", "--budget", "3", "--out", out, "-q", *more]

    def put_treasures(self, out):
        for name in TREASURES:
            os.makedirs(os.path.dirname(self.path(os.path.join(out, name))), exist_ok=True)
            self.write(os.path.join(out, name), name.encode())

    def check_treasures(self, out):
        for name in TREASURES:
            self.assertEqual(self.read(os.path.join(out, name)), name.encode())

    def files(self, out):
        return sorted(os.path.join(folder, f) for folder, _, files in os.walk(self.path(out)) for f in files)


class OwnershipTest(FolderCase):
    def test_a_folder_of_the_user_is_refused_as_it_is(self):
        for command in (self.batch, self.tune):
            self.put_treasures("mine")
            before = self.files("mine")
            self.bad("mine", "is not empty", *command("mine"))
            self.check_treasures("mine")
            self.assertEqual(self.files("mine"), before)

    def test_what_users_put_into_our_folder_stays(self):
        for command, out in ((self.batch, "b"), (self.tune, "t")):
            self.good(*command(out))
            self.put_treasures(out)
            self.good(*command(out))
            self.check_treasures(out)

    def test_batch_and_tune_do_not_share_a_folder(self):
        self.good(*self.batch("b"))
        self.good(*self.tune("t"))
        self.bad("b", "holds no results of 'dcrf tune'", *self.tune("b"))
        self.bad("t", "holds no results of 'dcrf batch'", *self.batch("t"))

    def test_a_short_log_of_somebody_else_stays(self):
        os.mkdir(self.path("mine"))
        self.write("mine/log.csv", b"my own log\n")
        self.bad("mine", "is not empty", *self.tune("mine"))
        self.assertEqual(self.read("mine/log.csv"), b"my own log\n")

    def test_a_log_without_its_search_is_nobodys(self):
        self.good(*self.tune())
        os.remove(self.path("out/search.json"))
        log = self.read("out/log.csv")
        self.bad("out/search.json", "is missing", *self.tune("out", "--seed", "2"))
        self.assertEqual(self.read("out/log.csv"), log)

    def test_a_digit_of_the_log_that_changed_is_found(self):
        self.good(*self.tune())
        log = bytearray(self.read("out/log.csv"))
        at = log.index(b"\n2,") + log[log.index(b"\n2,"):].index(b".") + 1
        log[at] ^= 1
        self.write("out/log.csv", log)
        self.bad("out/log.csv", "line 3 is not of a log of this search", *self.tune())

    def test_temporaries_of_a_killed_run_are_removed(self):
        self.good(*self.batch())
        self.write("out/results/mf5/.dcrf-temporary-a1B2c3", b"half")
        self.good(*self.batch())
        self.assertFalse(os.path.exists(self.path("out/results/mf5/.dcrf-temporary-a1B2c3")))

    def test_parents_are_made(self):
        self.good(*self.batch("a/b/c"))
        self.good(*self.tune("a/b/d/"))
        self.assertTrue(os.path.exists(self.path("a/b/c/summary.csv")))


class DamageTest(FolderCase):
    def test_every_bit_of_a_result_counts(self):
        self.good(*self.batch())
        summary = self.read("out/summary.csv")
        path = "out/results/mf5/p1.json"
        whole = self.read(path)
        for bit in range(3, 8 * len(whole), 8 * len(whole) // 23):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            self.write(path, damaged)
            self.good(*self.batch())
            self.assertEqual(self.read("out/summary.csv"), summary, bit)

    def test_kill_and_corrupt(self):
        rounds = torture.run(case.COMMAND, self.path("torture"), rounds=20, seed=1)
        self.assertGreater(rounds["same summary"], 10, rounds)
        self.assertGreater(rounds["killed"], 0, rounds)  # how many is a matter of time


class SignalTest(Case):
    def test_a_signal_while_files_are_written_leaves_none(self):
        os.mkfifo(self.path("pipe.png"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            before = set(os.listdir(self.folder))
            command = [case.COMMAND, "solve", self.image, "--unary", self.unary, "-q", "-o", "l.png", "--overlay",
                       "pipe.png"]
            # A shell that runs the tests in the background may have ignored signals, which is inherited.
            usual = lambda: signal.signal(number, signal.SIG_DFL)
            with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, preexec_fn=usual) as run:
                # The labels are complete in a temporary file; the pipe has no reader.
                deadline = time.monotonic() + case.HANG_S
                while set(os.listdir(self.folder)) == before and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertTrue(any(f.startswith(".dcrf-temporary-") for f in os.listdir(self.folder)))
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=case.HANG_S), -number)
            self.assertEqual(set(os.listdir(self.folder)), before)


class StackTest(FolderCase):
    def setUp(self):
        if os.environ.get("DCRF_TEST_BUILD") == "sanitized":
            self.skipTest("skipped: sanitizers surround every variable on the stack with others")
        super().setUp()

    def good_on_64_kb(self, *arguments, kb=64):
        def limit():
            resource.setrlimit(resource.RLIMIT_STACK, (kb * 1024, kb * 1024))

        # A short environment: it lies on the stack too.
        return self.good(*arguments, preexec_fn=limit, env={"PATH": os.environ["PATH"]})

    def test_a_stack_of_64_kb_is_enough(self):
        image, unary = "data/images/p0.png", "data/unaries/p0.npy"
        self.assertTrue(os.path.exists(self.path(image)) and os.path.exists(self.path(unary)))
        model = (image, "--unary", unary, "--unary-kind", "energies", "--unary-scale", "0.05")
        for method in ("mf", "qp", "lp"):
            self.good_on_64_kb("solve", *model, "-m", method, "--cliques", "slic", "-o", "l.png", "--overlay", "o.png",
                               "--report", "r.html", "--json", "j.json", "--trace", "t.csv", "--marginals", "m.npy")
        self.good_on_64_kb("solve", *model, "-m", "lp", "--operator", "exact", "--proof", "p.png", "--certificate",
                           "c.cert", "--explain")
        self.good_on_64_kb("certify", *model, "--labels", "l.png", "-t", "2")
        self.good_on_64_kb("verify", *model, "--labels", "l.png", "--certificate", "c.cert", "--operator", "exact")
        self.good_on_64_kb("energy", *model, "--labels", "l.png")
        for method in ("meanshift", "slic"):
            self.good_on_64_kb("superpixels", image, "--method", method, "-o", "s.npy", "--boundaries", "b.png")
        self.good_on_64_kb("batch", "data", "--methods", "mf5,qp,lp+cliques", "--out", "b", "--curves", "1", "-q")
        self.good_on_64_kb("tune", "data", "--method", "mf3", "--budget", "3", "--out", "t", "-q")
        size = (9, 8, 7)
        values = [float(i % 9 * 20) for i in range(9 * 8 * 7)]
        self.write("v.nii.gz", gzip.compress(volumes.nifti(values, size)))
        self.write("prior.nii.gz", gzip.compress(volumes.nifti([float(v > 60) for v in values], size)))
        self.good_on_64_kb("solve", "v.nii.gz", "--labels-prior", "prior.nii.gz", "-o", "l.nii.gz")
        # Half of it for inflating, which has buffers on the stack.
        self.good_on_64_kb("superpixels", "v.nii.gz", "--method", "slic", "-o", "s.nii.gz", kb=32)


if __name__ == "__main__":
    unittest.main()
