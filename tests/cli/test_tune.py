"""dcrf tune, on small data sets made here: what it finds, and that nothing stops it for good.

Run as: test_tune.py PATH/TO/dcrf
"""

import csv
import io
import json
import os
import random
import signal
import subprocess
import time
import unittest

import case
import datasets
import formats

WIDTH, HEIGHT, LABELS = 40, 30, 3
COLOURS = [(200, 60, 50), (60, 180, 70), (50, 70, 190)]
VOID = 255


def truth_at(x, y, shift):
    """A disc on two halves, with a void edge on the left."""
    if x == 0:
        return VOID
    if (x - 20) ** 2 + (y - 12 - shift) ** 2 < 64:
        return 2
    return int(x > 14 + 3 * shift)


class TuneCase(case.Case):
    def setUp(self):
        super().setUp()
        self.names = {"val": ["a", "b"], "test": ["c", "d"]}
        datasets.write(self.path("data"), [self.scene(name, shift) for shift, name in enumerate("abcd")], self.names,
                       {"labels": LABELS})

    @staticmethod
    def scene(name, shift):
        """Colours with some noise, and energies with so much that smoothing helps."""
        noise = random.Random(name)
        truth = [[truth_at(x, y, shift) for x in range(WIDTH)] for y in range(HEIGHT)]
        image = [[tuple(min(255, max(0, int(c + noise.gauss(0, 12)))) for c in COLOURS[t % 3])
                  for t in row] for row in truth]
        unary = [(0.0 if t % 3 == i else 1.0) + noise.gauss(0, 0.9)
                 for row in truth for t in row for i in range(LABELS)]
        return name, image, formats.npy(unary, (HEIGHT, WIDTH, LABELS)), truth

    def arguments(self, out, *more, method="mf5", budget=12):
        return ("tune", "data", "--method", method, "--budget", str(budget), "--out", out, *more)

    def tune(self, out, *more, **which):
        return self.good(*self.arguments(out, *more, **which))

    def log(self, out):
        return list(csv.DictReader(io.StringIO(self.read(out + "/log.csv").decode())))

    def best(self, out):
        return json.loads(self.read(out + "/best.json"))

    def same_results(self, out, other):
        for name in ("log.csv", "best.json", "tune.md", "search.svg", "search.json"):
            self.assertEqual(self.read(out + "/" + name), self.read(other + "/" + name), name)


class Results(TuneCase):
    # Weights so large that one label wins: every search does better.
    BAD_START = ("--spatial", "5,15", "--bilateral", "60,20,30")

    def test_beats_a_bad_start_on_both_splits(self):
        text = self.tune("out", *self.BAD_START)
        log, best = self.log("out"), self.best("out")
        self.assertEqual([row["phase"] for row in log], ["start"] + 5 * ["global"] + 6 * ["local"])
        self.assertEqual([int(row["number"]) for row in log], list(range(1, 13)))
        self.assertEqual((log[0]["spatial-weight"], log[0]["bilateral-sigma"]), ("15", "60"))
        scores = [float(row["score"]) for row in log]
        self.assertEqual(scores, [float(row["accuracy"]) for row in log])
        tuned = best["tuned"]
        self.assertEqual(tuned["scores"]["start"]["accuracy"], scores[0])
        self.assertEqual(tuned["scores"]["best"]["accuracy"], max(scores))
        self.assertGreater(max(scores), scores[0])
        held_out = tuned["held_out"]
        self.assertEqual(held_out["split"], "test")
        self.assertGreater(held_out["best"]["accuracy"], held_out["start"]["accuracy"])
        self.assertNotIn("does not", text)
        for part in ("val", "test", "start", "best", "%.3f" % (100 * max(scores))):
            self.assertIn(part, text)
            self.assertIn(part, self.read("out/tune.md").decode())
        self.assertIn("<svg", self.read("out/search.svg").decode())

    def test_the_strength_comes_first(self):
        self.tune("out", budget=24)
        log = self.log("out")
        swept = [row for row in log if row["phase"] == "sweep"]
        self.assertEqual([row["phase"] for row in log[:len(swept) + 1]], ["start"] + ["sweep"] * len(swept))
        # A fourth of the budget; the point that is the start is not evaluated again.
        self.assertIn(len(swept), (5, 6))
        factors = [float(row["strength-factor"]) for row in swept]
        self.assertEqual((factors[0], factors[-1]), (0.1, 10))
        self.assertEqual(factors, sorted(factors))
        for name in ("spatial-sigma", "bilateral-sigma", "spatial-share"):
            self.assertEqual({row[name] for row in swept}, {log[0][name]})
        curve = self.read("out/strength.svg").decode()
        self.assertEqual(curve.count("<circle"), len(swept) + 1)
        self.assertIn("unaries alone", curve)
        self.tune("again", "--parameters", "spatial-sigma", budget=8)
        self.assertNotIn("sweep", {row["phase"] for row in self.log("again")})
        self.assertFalse(os.path.exists(self.path("again/strength.svg")))

    def test_bounds_hold(self):
        self.tune("out", "--parameters", "spatial-weight=0.5:2,bilateral-colour=5:20:linear",
                  "--preset", "common", budget=15)
        for row in self.log("out"):
            self.assertTrue(0.5 <= float(row["spatial-weight"]) <= 2, row)
            self.assertTrue(5 <= float(row["bilateral-colour"]) <= 20, row)
            self.assertNotIn("spatial-sigma", row)
        settings = self.best("out")["settings"]
        self.assertEqual(settings["spatial"].split(",")[0], "3")
        self.assertEqual(settings["bilateral"].split(",")[::2], ["80", "5"])

    def test_start_outside_the_bounds_is_moved(self):
        text = self.tune("out", "--parameters", "spatial-weight=2:9", "--preset", "common", budget=2)
        self.assertIn("spatial-weight: the start has 1.5, outside of 2 to 9; beginning with 2",
                      text)
        self.assertEqual(self.log("out")[0]["spatial-weight"], "2")

    def test_batch_gives_the_scores_that_were_tuned(self):
        for method, objective, more in (("mf5", "accuracy", ()), ("qp", "iou", ("--rounded",)),
                                        ("mf3+cliques", "band", ("--band", "3"))):
            out = "out-" + objective
            self.tune(out, "--objective", objective, *more, method=method, budget=6)
            best = self.best(out)
            for split, known in (("val", best["tuned"]["scores"]),
                                 ("test", best["tuned"]["held_out"])):
                batch = "%s-%s" % (out, split)
                self.good("batch", "data", "--config", out + "/best.json", "--methods", method,
                          "--split", split, "--out", batch, "--quiet", "--curves", "0", *more)
                self.assertAlmostEqual(self.batch_accuracy(batch, method),
                                       known["best"]["accuracy"], delta=1e-12)
                self.assertAlmostEqual(self.batch_accuracy(batch, "unary"),
                                       known["unary"]["accuracy"], delta=1e-12)

    def batch_accuracy(self, out, method):
        """From the label maps alone."""
        right = pixels = 0
        folder = os.path.join(out, "results", method)
        for file in os.listdir(self.path(folder)):
            if file.endswith(".png"):
                labels = formats.read_png(self.read(os.path.join(folder, file)))[4]
                truth = formats.read_png(self.read("data/gt/" + file))[4]
                pairs = [(a[0], b[0]) for x, y in zip(labels, truth) for a, b in zip(x, y)
                         if b[0] != VOID]
                right += sum(a == b for a, b in pairs)
                pixels += len(pairs)
        return right / pixels

    def test_solve_takes_the_result(self):
        self.tune("out", method="mf3+cliques", budget=8)
        settings = self.best("out")["settings"]
        self.assertEqual(settings["cliques"], "meanshift")
        self.assertEqual(sorted(settings), ["bilateral", "cliques", "compatibility", "eta", "gamma", "min-region",
                                            "normalize", "operator", "spatial", "spatial-share",
                                            "strength", "strength-factor", "temperature"])
        text = self.good("solve", "data/images/a.png", "--config", "out/best.json", "--method",
                         "mf", "--unary", "data/unaries/a.npy", "--unary-kind", "energies", "--json", "-",
                         "--quiet")
        solved = json.loads(text)["settings"]
        for name in ("spatial", "bilateral", "cliques", "min-region"):
            self.assertEqual(solved[name], settings[name])
        for name in ("gamma", "strength"):
            self.assertEqual(str(solved[name]), settings[name] if settings[name] == "auto" else
                             str(float(settings[name])))

    def test_eight_parameters_with_cliques(self):
        self.tune("out", method="mf3+cliques", budget=25)
        log = self.log("out")
        sizes = {row["min-region"] for row in log}
        self.assertLessEqual(sizes, {"5", "7", "10", "14", "20", "28", "40", "57", "80", "113",
                                     "160", "200"})
        self.assertEqual(log[0]["min-region"], "20")
        self.assertEqual(len(log[0]), 3 + 8 + 3 + 1)

    def test_a_start_that_is_best_is_said_so(self):
        text = self.tune("out", budget=1)
        self.assertIn("No setting that was tried", text)
        best = self.best("out")
        self.assertEqual(best["settings"], best["tuned"]["start"])
        self.assertEqual(best["settings"]["bilateral"], "40,8")
        self.assertEqual(best["settings"]["strength"], "auto")

    def test_gain_that_is_not_there_elsewhere_is_said_so(self):
        # The truth of the other split is something else, which smoothing loses.
        for name in self.names["test"]:
            wrong = [[(x + y) % 3 for x in range(WIDTH)] for y in range(HEIGHT)]
            self.write("data/gt/%s.png" % name, formats.number_png(wrong))
            unary = [float((x + y) % 3 != i) for y in range(HEIGHT) for x in range(WIDTH)
                     for i in range(LABELS)]
            self.write("data/unaries/%s.npy" % name, formats.npy(unary, (HEIGHT, WIDTH, LABELS)))
        text = self.tune("out", "--spatial", "1,0.05", "--bilateral", "5,2,0.05")
        self.assertIn("On test the best setting does not have more accuracy", text)
        self.assertIn("does not have more accuracy", self.read("out/tune.md").decode())


class Resuming(TuneCase):
    def test_the_compatibility_is_part_of_the_search(self):
        def tree(cost):
            self.write("tree.txt", b"two cost %g: 0 1\nall cost 1: two 2\n" % cost)
        more = "--compatibility", "tree:tree.txt"
        tree(0.5)
        self.tune("out", *more, budget=4)
        self.assertEqual(self.best("out")["settings"]["compatibility"], "tree:tree.txt")
        self.good("batch", "data", "--split", "val", "--methods", "mf5", "--config", "out/best.json", "--out", "batch", "--curves", "0")
        scores = {row["method"]: row["pixel_accuracy"] for row in json.loads(self.read("batch/summary.json"))["methods"]}
        self.assertAlmostEqual(scores["mf5"], self.best("out")["tuned"]["scores"]["best"]["accuracy"], places=12)
        self.assertNotEqual([row["accuracy"] for row in self.log("out")], [row["accuracy"] for row in self.potts(4)])
        self.tune("out", *more, budget=5)
        tree(0.25)
        self.bad("out/search.json", "has another 'data'", *self.arguments("out", *more))
        self.bad("out/search.json", "has another 'settings'", *self.arguments("out", "--compatibility", "linear"))
        self.bad("none.txt", "No such file", *self.arguments("new", "--compatibility", "tree:none.txt"))
        self.assertFalse(os.path.exists(self.path("new")))

    def potts(self, budget):
        self.tune("potts", budget=budget)
        return self.log("potts")

    def test_threads_and_memory_do_not_matter(self):
        self.tune("out", "--jobs", "1", "--threads", "1")
        self.tune("other", "--jobs", "2", "--threads", "2", "--memory", "3M")
        self.same_results("out", "other")

    def test_killed_again_and_again(self):
        self.tune("whole", method="qp", budget=20)
        command = [case.COMMAND, *self.arguments("out", method="qp", budget=20)]
        kills = 0
        for lines in (0, 1, 2, 5, 9, 10, 16, 20):
            with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL) as run:
                while run.poll() is None and self.lines_of("out") < lines + 1:
                    time.sleep(0.001)
                run.kill()
                kills += run.wait() == -signal.SIGKILL
        self.assertGreaterEqual(kills, 4)
        self.good(*command[1:])
        self.same_results("out", "whole")
        self.assertEqual([name for name in os.listdir(self.path("out")) if name.startswith(".")],
                         [".lock"])

    def lines_of(self, out):
        try:
            return self.read(out + "/log.csv").count(b"\n")
        except FileNotFoundError:
            return 0

    def test_half_a_line_is_dropped(self):
        self.tune("whole")
        self.tune("out")
        log = self.read("out/log.csv")
        for cut in (0, 10, len(log) // 2, len(log) - 1):
            self.write("out/log.csv", log[:cut])
            self.tune("out")
            self.same_results("out", "whole")

    def test_a_larger_budget_goes_on(self):
        self.tune("out", budget=8)
        first = self.read("out/log.csv")
        self.tune("out", budget=14)
        self.assertEqual(self.read("out/log.csv")[:len(first)], first)
        self.assertEqual(len(self.log("out")), 14)
        self.bad("out/search.json", "a budget of 14", *self.arguments("out", budget=8))
        self.tune("out", budget=14)

    def test_interrupted(self):
        command = [case.COMMAND, *self.arguments("out", method="qp", budget=200)]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                               signal.default_int_handler)) as run:
            while self.lines_of("out") < 3 and run.poll() is None:
                time.sleep(0.001)
            run.send_signal(signal.SIGINT)
            output, errors = run.communicate(timeout=case.HANG_S)
        self.assertEqual((run.returncode, output), (130, ""), errors)
        self.assertIn("the same command continues", errors)
        self.assertFalse(os.path.exists(self.path("out/best.json")))
        self.assertGreaterEqual(self.lines_of("out"), 3)

    def test_another_search_is_refused(self):
        self.tune("out", budget=3)
        same = self.arguments("out", budget=3)
        for name, more in (("seed", ("--seed", "2")), ("method", ("--method", "qp")),
                           ("objective", ("--objective", "iou")), ("band", ("--band", "3")),
                           ("rounded", ("--rounded",)), ("split", ("--split", "test")),
                           ("parameters", ("--parameters", "spatial-sigma")),
                           ("settings", ("--operator", "exact", "--parameters",
                                         self.default_parameters()))):
            self.bad("out/search.json", "has another '%s'" % name, *same, *more)
        datasets.put_scene(self.path("data"), *self.scene("b", 3))
        self.bad("out/search.json", "has another 'data'", *same)

    def default_parameters(self):
        return ",".join("%s=%s" % pair for pair in (
            ("strength-factor", "0.1:10"), ("spatial-share", "0.05:0.95"), ("spatial-sigma", "0.5:10"),
            ("bilateral-sigma", "5:150"), ("bilateral-colour", "1:40")))


class Problems(TuneCase):
    def test_bad_options(self):
        out = self.arguments("out")
        for subject, words, more in (
                ("--method", "has nothing to tune", ("--method", "unary")),
                ("--method", "is not a method", ("--method", "sgd")),
                ("--objective", "is not one of", ("--objective", "speed")),
                ("--budget", "above zero", ("--budget", "0")),
                ("--band", "too many", ("--band", "100")),
                ("--split", "no data/splits/none-such.txt", ("--split", "none-such")),
                ("--held-out", "is the split that is tuned on", ("--held-out", "val")),
                ("--parameters", "did you mean eta?", ("--parameters", "etta")),
                ("--parameters", "add +cliques", ("--parameters", "gamma")),
                ("--parameters", "no spatial kernel",
                 ("--spatial", "none", "--parameters", "spatial-sigma")),
                ("--parameters", "stands there twice", ("--parameters", "eta,eta")),
                ("--parameters", "3 is not below 2", ("--parameters", "eta=3:2")),
                ("--parameters", "above zero", ("--parameters", "eta=0:2")),
                ("--parameters", "zero on a linear scale", ("--parameters", "gamma=0:2")),
                ("--parameters", "whole numbers", ("--parameters", "min-region=1.5:20")),
                ("--parameters", "LOW:HIGH", ("--parameters", "eta=1:2:cubic")),
                ("--parameters", "LOW:HIGH", ("--parameters", "eta=5")),
                ("--parameters", "LOW:HIGH", ("--parameters", "eta=nan:5"))):
            self.bad(subject, words, *out, *more)
        self.bad("--parameters", "there are no kernels", *out, "--spatial", "none", "--bilateral",
                 "none")
        self.bad("tune", "--budget N is missing", "tune", "data", "--out", "out")
        self.bad("tune", "--out FOLDER is missing", "tune", "data", "--budget", "3")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_regions_from_files_have_no_size(self):
        self.bad("--parameters", "come from files", *self.arguments("out", method="mf5+cliques"),
                 "--cliques", "maps", "--parameters", "min-region")

    def test_bad_data(self):
        out = self.arguments("out")
        whole = self.read("data/images/b.png")
        self.write("data/images/b.png", whole[:100])
        self.bad("data/images/b.png", "truncated", *out)
        os.remove(self.path("data/images/b.png"))
        self.bad("b", "there is no images/b.png", *out)
        self.write("data/images/b.png", whole)
        self.good(*out)
        void = [[VOID] * WIDTH for _ in range(HEIGHT)]
        for name in self.names["val"]:
            self.write("data/gt/%s.png" % name, formats.number_png(void))
        self.bad("data", "no pixel to score", *self.arguments("other"))
        os.rename(self.path("data/gt"), self.path("data/elsewhere"))
        self.bad("data", "tuning needs the truth", *self.arguments("third"))

    def test_an_image_that_needs_too_much_memory(self):
        self.bad("a", "--memory allows less", *self.arguments("out"), "--memory", "100K", "--jobs",
                 "1", status=1)

    def test_folder_that_cannot_be_written(self):
        os.mkdir(self.path("closed"), 0o555)
        done = self.run_as_somebody(*self.arguments("closed/out"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "dcrf: closed/out: cannot be made: Permission denied\n")


if __name__ == "__main__":
    unittest.main()
