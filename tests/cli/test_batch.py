"""dcrf batch: what it leaves on the disk, whatever happens to it. The numbers of its summary are checked in
test_batch_report.py."""

import fcntl
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest

import case
import datasets
import formats
from case import Case

SUMMARY = ["summary.csv", "summary.json", "summary.md"]
SANITIZED = os.environ.get("DCRF_TEST_BUILD") == "sanitized"


class BatchCase(Case):
    def setUp(self):
        super().setUp()
        self.data = self.path("data")
        self.names = datasets.make(self.data)

    def batch(self, *more, out="out", methods="mf5,qp,lp", data=None):
        return ["batch", data or self.data, "--methods", methods, "--out", self.path(out), "--curves", "0",
                "--pictures", "1", *more]

    def summary(self, out="out"):
        return [self.read(os.path.join(out, name)) for name in SUMMARY]

    def result(self, method, name, out="out"):
        return json.loads(self.read(os.path.join(out, "results", method, name + ".json")))

    def stamps(self, out="out"):
        """When every result was written."""
        root = self.path(os.path.join(out, "results"))
        return {os.path.join(folder, f): os.stat(os.path.join(folder, f)).st_mtime_ns
                for folder, _, files in os.walk(root) for f in files}

    def left_behind(self, out="out"):
        return [f for _, _, files in os.walk(self.path(out)) for f in files
                if f.startswith(".") and f != ".lock"]


class ResultTest(BatchCase):
    def test_results(self):
        self.good(*self.batch(methods="unary,mf5,lp,mf5+cliques"))
        for name in self.names:
            for method in ["unary", "mf5", "lp", "mf5+cliques"]:
                found = self.result(method, name)
                self.assertEqual((found["image"], found["method"]), (name, method))
                labels = self.path("out/results/%s/%s.png" % (method, name))
                options = ["--cliques", "meanshift"] if "cliques" in method else []
                again = json.loads(self.good(
                    "energy", self.data + "/images/%s.png" % name, "--unary",
                    self.data + "/unaries/%s.npy" % name, "--unary-scale", "0.05", "--labels", labels,
                    "--json", "-", *options))
                self.assertEqual(found["energy"], again["energy"])
            self.assertGreaterEqual(self.result("lp", name)["relative_gap"], 0)
            self.assertIsNone(self.result("mf5", name)["lower_bound"])

    def test_a_result_is_a_config_that_repeats_it(self):
        self.good(*self.batch(methods="mf5+cliques"))
        out = self.path("again.png")
        self.good("solve", "--config", self.path("out/results/mf5+cliques/p1.json"), "-o", out)
        pixels = formats.read_png(self.read("again.png"))[4]
        self.assertEqual(pixels, formats.read_png(self.read("out/results/mf5+cliques/p1.png"))[4])

    def test_rounded_is_the_method_alone(self):
        self.good(*self.batch(methods="mf5"))
        self.good(*self.batch("--rounded", methods="mf5", out="rounded"))
        for name in self.names:
            rounded = self.result("mf5", name, "rounded")
            self.assertEqual(rounded["energy"], rounded["energy_rounded"])
            self.assertSameInFloats(rounded["energy"], self.result("mf5", name)["energy_rounded"])
            self.assertLessEqual(self.result("mf5", name)["energy"], rounded["energy"])

    def test_any_number_of_jobs_and_threads(self):
        self.good(*self.batch("--jobs", "1", "--threads", "1"))
        first = self.summary()
        for jobs, threads in [("3", "1"), ("2", "2"), ("20", "0")]:
            shutil.rmtree(self.path("out"))
            self.good(*self.batch("--jobs", jobs, "--threads", threads))
            self.assertEqual(self.summary(), first, (jobs, threads))

    def test_without_truth_and_splits(self):
        plain = self.path("plain")
        names = datasets.make(plain, count=2, truth=False)
        shutil.rmtree(plain + "/splits")
        os.remove(plain + "/classes.txt")
        self.good(*self.batch(data=plain))
        self.assertNotIn("score", self.result("qp", names[0]))
        self.assertNotIn(b"IoU", self.read("out/summary.csv"))

    def test_split(self):
        self.good(*self.batch("--split", "val"))
        self.assertEqual(sorted(os.listdir(self.path("out/results/lp"))),
                         sorted(n + e for n in self.names[:3] for e in (".json", ".png")))

    def test_regions_from_a_folder(self):
        os.mkdir(self.path("regions"))
        for name in self.names:
            rows = [[x // 6 + 4 * (y // 6) for x in range(24)] for y in range(18)]
            self.write("regions/%s.png" % name, formats.number_png(rows))
        self.good(*self.batch("--cliques", self.path("regions"), methods="qp,qp+cliques"))
        self.good("solve", "--config", self.path("out/results/qp+cliques/p1.json"), "-o", self.path("again.png"))
        self.assertEqual(formats.read_png(self.read("again.png"))[4],
                         formats.read_png(self.read("out/results/qp+cliques/p1.png"))[4])
        before = self.stamps()
        os.remove(self.path("regions/p3.png"))
        self.write("regions/p3.npy", formats.npy([0] * (24 * 18), (18, 24), descr="<i4"))
        self.good(*self.batch("--cliques", self.path("regions"), methods="qp,qp+cliques"))
        changed = sorted(os.path.relpath(f, self.path("out/results")) for f, t in self.stamps().items()
                         if before[f] != t)
        self.assertEqual(changed, ["qp+cliques/p3.json", "qp+cliques/p3.png"])


class CompatibilityTest(BatchCase):
    def tree(self, cost):
        return "tree:" + self.write("tree.txt", b"seen cost %g: 0 1 3\nall cost 2: seen 2\n" % cost)

    def test_results_are_those_of_solve(self):
        for options in (("--preset", "stereo"), ("--compatibility", self.tree(0.75))):
            with self.subTest(options=options):
                self.good(*self.batch(*options, methods="mf5,lp", out="out"))
                for method in ("unary", "mf5", "lp"):
                    found = self.result(method, "p1")
                    self.assertEqual(found["settings"]["compatibility"], options[1].replace("stereo", "truncated-linear:4"))
                    labels = self.path("out/results/%s/p1.png" % method)
                    again = json.loads(self.good(
                        "energy", self.data + "/images/p1.png", "--unary", self.data + "/unaries/p1.npy", "--unary-scale",
                        "0.05", "--labels", labels, "--json", "-", *options))
                    self.assertEqual(found["energy"], again["energy"])
                self.good("solve", "--config", self.path("out/results/lp/p1.json"), "-o", self.path("again.png"))
                self.assertEqual(formats.read_png(self.read("again.png"))[4],
                                 formats.read_png(self.read("out/results/lp/p1.png"))[4])

    def test_only_another_file_is_solved_again(self):
        def run(cost):
            self.good(*self.batch("--compatibility", self.tree(cost), methods="mf5"))
            return self.stamps()
        first = run(0.75)
        self.assertEqual(run(0.75), first)
        other = run(0.5)
        self.assertEqual([f for f in first if first[f] == other[f]], [])
        self.good(*self.batch("--compatibility", "linear", methods="mf5"))
        self.assertEqual([f for f, t in self.stamps().items() if other[f] == t], [])

    def matrix(self, name, mu):
        numbers = range(len(datasets.CLASSES))
        return self.write(name, formats.npy([float(mu(i, j)) for i in numbers for j in numbers], (len(numbers),) * 2))

    def test_what_the_bounds_leave_out(self):
        squares = self.matrix("squares.npy", lambda i, j: (i - j) ** 2)
        words = "leaves out up to 6 of the cost of two labels, up to 66.67 % of it"
        text = self.good(*self.batch("--compatibility", squares, methods="mf5,lp"))
        self.assertIn(words, text)
        found = self.result("lp", "p0")["bound_left_out"]
        self.assertAlmostEqual(found["distance"], 6)
        self.assertGreaterEqual(found["energy"], 0)
        for name in ("summary.md", "report.html"):
            self.assertIn(words, self.read("out/" + name).decode())
        rows = {row["method"]: row for row in json.loads(self.read("out/summary.json"))["methods"]}
        self.assertAlmostEqual(rows["lp"]["bound_left_out"]["distance"], 6)
        self.assertNotIn("bound_left_out", rows["mf5"])
        self.assertNotIn("bound_left_out", self.result("mf5", "p0"))
        self.assertNotIn("leaves out", self.good(*self.batch("--compatibility", "linear", methods="lp", out="whole")))
        self.assertNotIn("bound_left_out", self.read("whole/summary.json").decode() + self.read("whole/report.html").decode())

    def test_refused_before_anything_is_written(self):
        def refuse(subject, words, text, methods="lp"):
            self.bad(subject, words, *self.batch("--compatibility", text, methods=methods))
        self.write("bad.txt", b"seen cost 1: 0 1 2\n")
        negative = self.matrix("negative.npy", lambda i, j: -abs(i - j))
        refuse("bad.txt", "by no path", "tree:bad.txt")
        refuse("none.npy", "No such file", "none.npy", methods="mf5")
        refuse("--compatibility", "is not a compatibility", "quadratic")
        refuse(negative, "LP relaxation needs", negative)
        self.good(*self.batch("--compatibility", negative, methods="mf5"))


class NothingTwiceTest(BatchCase):
    def changed(self, before):
        return sorted(os.path.relpath(f, self.path("out/results")) for f, t in self.stamps().items()
                      if before.get(f) != t)

    def test_second_run_does_nothing(self):
        self.good(*self.batch())
        before, summary = self.stamps(), self.summary()
        self.good(*self.batch())
        self.assertEqual(self.changed(before), [])
        self.assertEqual(self.summary(), summary)

    def test_only_what_changed(self):
        self.good(*self.batch(methods="mf5,mf5+cliques"))
        before = self.stamps()
        data = bytearray(self.read("data/unaries/p2.npy"))
        data[-1] ^= 1
        self.write("data/unaries/p2.npy", data)
        self.good(*self.batch(methods="mf5,mf5+cliques"))
        self.assertEqual(self.changed(before), ["mf5+cliques/p2.json", "mf5+cliques/p2.png",
                                                "mf5/p2.json", "mf5/p2.png", "unary/p2.json",
                                                "unary/p2.png"])
        before = self.stamps()
        self.good(*self.batch("--gamma", "3", methods="mf5,mf5+cliques"))
        self.assertEqual({os.path.dirname(f) for f in self.changed(before)}, {"mf5+cliques"})
        before = self.stamps()
        self.good(*self.batch("--gamma", "3", "--spatial", "2,1", methods="mf5,mf5+cliques"))
        self.assertEqual(len(self.changed(before)), len(before))

    def test_damaged_results_are_made_again(self):
        self.good(*self.batch())
        before, labels = self.stamps(), self.read("out/results/qp/p0.png")
        self.write("out/results/qp/p0.png", labels[:50])
        self.write("out/results/lp/p1.json", self.read("out/results/lp/p1.json")[:100])
        os.remove(self.path("out/results/mf5/p2.png"))
        summary = self.summary()
        self.good(*self.batch())
        self.assertEqual(self.changed(before), ["lp/p1.json", "lp/p1.png", "mf5/p2.json", "mf5/p2.png",
                                                "qp/p0.json", "qp/p0.png"])
        self.assertEqual(self.read("out/results/qp/p0.png"), labels)
        self.assertEqual(self.summary(), summary)

    def test_one_run_at_a_time(self):
        self.good(*self.batch())
        with open(self.path("out/.lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.bad(self.path("out"), "another run works in this folder", *self.batch(), status=1)


class KilledTest(BatchCase):
    """Long enough to be hit: larger pictures, and the slow method."""

    def setUp(self):
        super().setUp()
        shutil.rmtree(self.data)
        side = 24 if SANITIZED else 64
        self.names = datasets.make(self.data, count=8, width=side, height=side)
        began = time.monotonic()
        self.good(*self.batch(out="whole"))
        self.whole_s = time.monotonic() - began

    def results(self):
        return [name for _, _, files in os.walk(self.path("out/results")) for name in files
                if name.endswith(".json") and not name.startswith(".")]

    def start(self, *more):
        return subprocess.Popen([case.COMMAND, *self.batch(*more)], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def strike(self, number, after_s=None):
        """Start a run and hit it, then or when it has a result; None where it had ended before."""
        run = self.start()
        if after_s is None:
            while run.poll() is None and not self.results():
                time.sleep(0.001)
        else:
            time.sleep(after_s)
        hit = run.poll() is None
        run.send_signal(number)
        message = run.communicate()[1]
        return (run.returncode, message) if hit and run.returncode != 0 else None

    def test_killed_ten_times(self):
        chance = random.Random(5)
        hits = 0
        for _ in range(200):
            if hits == 10:
                break
            if not self.strike(signal.SIGKILL, chance.uniform(0, self.whole_s / 5)):
                shutil.rmtree(self.path("out"))  # it came to its end: begin again
                continue
            hits += 1
            root = self.path("out/results")
            for folder, _, files in os.walk(root):
                for name in files:
                    if name.endswith(".json") and not name.startswith("."):
                        with open(os.path.join(folder, name), encoding="utf-8") as stream:
                            self.assertIn("energy", json.load(stream))
        self.assertEqual(hits, 10)
        before = self.stamps()
        self.good(*self.batch())
        self.assertEqual(self.summary(), self.summary("whole"))
        self.assertEqual(self.left_behind(), [])
        after = self.stamps()
        kept = [f for f in before if f.endswith(".json") and not os.path.basename(f).startswith(".")]
        self.assertEqual([f for f in kept if after[f] != before[f]], [])

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            hit = None
            for _ in range(20):
                shutil.rmtree(self.path("out"), ignore_errors=True)
                hit = self.strike(number)
                if hit and hit[0] > 0:  # and not in the summary, where it ends at once
                    break
            self.assertTrue(hit)
            self.assertEqual(hit[0], 130)
            self.assertIn("interrupted; what is done is kept", hit[1])
            self.assertEqual(self.left_behind(), [])
            self.assertFalse(os.path.exists(self.path("out/summary.csv")))
            self.good(*self.batch())
            self.assertEqual(self.summary(), self.summary("whole"))

    # What is in work would go on for seconds.
    def test_images_in_work_are_given_up(self):
        command = [case.COMMAND, *self.batch("--jobs", "1", "--gap", "1e-12", methods="lp3000")]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while run.poll() is None and not self.results():
            time.sleep(0.001)
        self.assertEqual(len(self.results()), 1)  # of the unaries, which come first
        run.send_signal(signal.SIGINT)
        self.assertIn("interrupted; what is done is kept", run.communicate()[1])
        self.assertEqual(run.returncode, 130)
        self.assertEqual(len(self.results()), 1)
        self.assertFalse(os.path.exists(self.path("out/failures")) and os.listdir(self.path("out/failures")))

    # Set-up included: a pass over all pairs takes longer than this one.
    def test_a_time_limit_is_for_all_of_an_image(self):
        datasets.make(self.path("large"), count=1, width=150, height=150)
        done = self.run_dcrf(*self.batch("--time-limit", "0.01", "--operator", "exact", "--bilateral", "60,200", "--threads", "1", methods="mf",
                                         data=self.path("large")))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the time limit ended while", self.read("out/failures/p0.txt").decode())


class BadInputTest(BatchCase):
    def test_bad_images_are_skipped(self):
        self.good(*self.batch(out="whole"))
        image, unary = self.read("data/images/p0.png"), self.read("data/unaries/p1.npy")
        truth, cut = self.read("data/gt/p2.png"), self.read("data/unaries/p3.npy")
        self.write("data/images/p0.png", image[:len(image) // 2])
        self.write("data/unaries/p1.npy", formats.npy([0] * (18 * 24 * 3), (18, 24, 3), descr="|u1"))
        self.write("data/gt/p2.png", formats.number_png([[7] * 24] * 18))
        self.write("data/unaries/p3.npy", cut[:-5])
        done = self.run_dcrf(*self.batch())
        self.assertEqual(done.returncode, 3)
        self.assertTrue(done.stderr.startswith("dcrf: %s: 4 of 6 images were skipped; %s/failures says why, first: %s/images/p0.png: "
                                               % (self.data, self.path("out"), self.data)), done.stderr)
        for name, words in [("p0", "p0.png: "), ("p1", "has 3 labels but dataset.json says 4"),
                            ("p2", "has 7 at x = 0, y = 0; labels are 0 to 3, and 255"),
                            ("p3", "p3.npy: ")]:
            self.assertIn(words, self.read("out/failures/%s.txt" % name).decode())
        self.assertEqual(json.loads(self.read("out/summary.json"))["methods"][0]["images"], 2)
        self.assertIn(b"dataset.json says 4", self.read("out/summary.md"))

        self.write("data/images/p0.png", image)
        self.write("data/unaries/p1.npy", unary)
        self.write("data/gt/p2.png", truth)
        self.write("data/unaries/p3.npy", cut)
        before = self.stamps()
        self.good(*self.batch())
        self.assertEqual(self.summary(), self.summary("whole"))
        self.assertEqual([f for f in before if self.stamps()[f] != before[f]], [])

    def test_if_all_are_skipped_the_reason_is_said(self):
        for name in os.listdir(self.data + "/gt"):
            self.write("data/gt/" + name, formats.number_png([[7] * 24] * 18))
        done = self.run_dcrf(*self.batch())
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertRegex(done.stderr, r'6 of 6 images were skipped; .*, first: .*: has 7 at x = 0, y = 0; labels are 0 to 3, and 255 .*"void" in dataset.json')

    def test_missing_files_are_skipped(self):
        os.remove(self.data + "/images/p0.png")
        os.remove(self.data + "/unaries/p1.npy")
        os.remove(self.data + "/gt/p2.png")
        self.assertEqual(self.run_dcrf(*self.batch("--split", "val")).returncode, 3)
        for name, part in [("p0", "images"), ("p1", "unaries"), ("p2", "gt")]:
            self.assertIn("there is no %s/%s." % (part, name), self.read("out/failures/%s.txt" % name).decode())

    def test_memory(self):
        done = self.run_dcrf(*self.batch("--memory", "100K"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("MiB; --memory allows less", self.read("out/failures/p0.txt").decode())
        self.good(*self.batch("--memory", "1M", "--jobs", "4"))
        self.good(*self.batch(out="free"))
        self.assertEqual(self.summary(), self.summary("free"))

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_memory_stays_bounded(self):
        large = self.path("large")
        datasets.make(large, count=4, width=230, height=170)

        def peak_mib(*more, out):
            """Of a run with four images at a time, less that of a run with none to solve."""
            run = subprocess.Popen([case.COMMAND, *self.batch("--jobs", "4", "--quiet", *more, out=out, data=large)])
            _, status, usage = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(run.returncode, 0)
            return usage.ru_maxrss / 1024
        free = peak_mib(out="free")
        program = peak_mib(out="free")
        bounded = peak_mib("--memory", "60M", out="bounded")
        self.assertLess(bounded - program, 60, (free, program))
        self.assertGreater(free - program, 60, "four images at a time take more, else this shows nothing")
        self.assertEqual(self.summary("bounded"), self.summary("free"))

    def test_weights_and_strength_contradict(self):
        self.bad("--strength", "weight of its own", *self.batch("--preset", "common", "--strength", "2"))
        self.bad("--normalize", "need weights", *self.batch("--normalize", "none"))
        self.assertFalse(os.path.exists(self.path("out")))

    def test_bad_data_sets(self):
        def says(words, name, text, subject=None):
            saved = self.read("data/" + name)
            self.write("data/" + name, text.encode())
            self.bad(subject or self.data + "/" + name, words, *self.batch("--split", "val"))
            self.write("data/" + name, saved)
        says("is not JSON", "dataset.json", "{")
        says("\"labels\" is not a whole number", "dataset.json", "{}")
        says("\"void\" is not", "dataset.json", '{"labels": 4, "void": -3}')
        says("\"kind\" is none of", "dataset.json", '{"labels": 4, "unary": {"kind": "guesses"}}')
        says("\"energy_per_unit\" is not", "dataset.json", '{"labels": 4, "unary": {"energy_per_unit": 0}}')
        says("names 1 classes, but dataset.json says 4", "classes.txt", "one\n")
        says("names 'p0' twice", "splits/val.txt", "p0\np1\np0\n")
        says("is not the name of an image", "splits/val.txt", "../p0\n")
        says("is not a text file", "splits/val.txt", "p0\n\0\n")
        says("has no images in the split val", "splits/val.txt", "\n", self.data)
        self.bad("--split", "there is no", *self.batch("--split", "nowhere"))
        self.bad(self.path("nowhere"), "is not a folder", *self.batch(data=self.path("nowhere")))

    def test_bad_options(self):
        self.bad("--methods", "'mf5+clique' is not a method", *self.batch(methods="mf5+clique"))
        self.bad("--methods", "'qp' stands there twice", *self.batch(methods="qp,lp,qp"))
        self.bad("--methods", "'lp05' is not a method", *self.batch(methods="lp05"))
        self.bad("--band", "64 is the most", *self.batch("--band", "65"))
        self.bad("--memory", "'lots' is not a number of bytes", *self.batch("--memory", "lots"))
        self.bad("batch", "--out FOLDER is missing", "batch", self.data)


class BadDiskTest(BatchCase):
    def test_files_that_may_not_grow(self):
        """A size limit stands in for a full disk: writes fail in the midst of a file."""
        self.good(*self.batch(out="whole"))

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        done = self.run_dcrf(*self.batch(), preexec_fn=limit)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write: File too large", done.stderr)
        self.assertEqual(self.left_behind(), [])
        self.good(*self.batch())
        self.assertEqual(self.summary(), self.summary("whole"))

    def test_full_disk(self):
        os.mkdir(self.path("small"))
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", self.path("small")],
                               capture_output=True, check=False)
        if mount.returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        try:
            done = self.run_dcrf(*self.batch(out="small/out"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left on device", done.stderr)
            subprocess.run(["mount", "-o", "remount,size=8m", self.path("small")], check=True)
            before = self.stamps("small/out")
            self.good(*self.batch(out="small/out"))
            after = self.stamps("small/out")
            kept = [f for f in before if f.endswith(".json")]
            self.assertEqual([f for f in kept if after[f] != before[f]], [])
            self.good(*self.batch(out="whole"))
            self.assertEqual(self.summary("small/out"), self.summary("whole"))
        finally:
            subprocess.run(["umount", self.path("small")], check=True)

    def test_read_only_folder(self):
        os.mkdir(self.path("out"))
        os.chmod(self.path("out"), 0o555)
        done = self.run_as_somebody(*self.batch())
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "dcrf: %s: cannot be written to: Permission denied\n" % self.path("out"))
        self.assertEqual(os.listdir(self.path("out")), [])

    def test_out_is_a_file(self):
        self.write("file", b"mine")
        self.bad(self.path("file"), "cannot be", *self.batch(out="file"), status=1)
        self.bad(self.path("file/out"), "cannot be made", *self.batch(out="file/out"), status=1)


if __name__ == "__main__":
    unittest.main()
