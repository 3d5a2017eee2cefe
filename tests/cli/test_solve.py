#!/usr/bin/env python3
"""dcrf solve and dcrf certify: results against enumeration, and against each other."""

import csv
import io
import itertools
import json
import unittest

import formats
import volumes
from case import HEIGHT, LABELLING, LABELS, REGIONS, WIDTH, Case, kernel_value

KEYS = {"method", "width", "height", "labels", "cliques", "energy", "energy_unary",
        "energy_pairwise", "energy_cliques", "lower_bound", "relative_gap", "iterations", "stop",
        "setup_s", "solve_s", "polish_s", "threads", "version"}


class SolveCase(Case):
    def solve(self, *more):
        return json.loads(self.good("solve", self.image, "--unary", self.unary, "--json", "-",
                                    *more))

    def certify(self, labels, *more):
        return json.loads(self.good("certify", self.image, "--unary", self.unary, "--labels",
                                    labels, "--json", "-", *more))


class ChangesTest(SolveCase):
    """What became of the unary minimum, in numbers that can be counted from the labels written."""

    def labels_of(self, *more):
        result = self.solve("-o", "l.npy", *more)
        return result, list(self.read("l.npy")[-WIDTH * HEIGHT:])

    def test_counted(self):
        _, before = self.labels_of("--strength", "0")
        for more in ((), ("--strength", "3"), ("--strength", "50"), ("--temperature", "20")):
            result, after = self.labels_of(*more)
            changes = result["changes"]
            self.assertEqual(changes["pixels_changed"], sum(a != b for a, b in zip(after, before)))
            self.assertAlmostEqual(changes["share_changed"], changes["pixels_changed"] / len(after))
            self.assertEqual(changes["labels_before"], len(set(before)))
            self.assertEqual(changes["labels_after"], len(set(after)))
            self.assertEqual([entry["label"] for entry in changes["vanished"]],
                             sorted(set(before) - set(after)))
            most = max(set(after), key=after.count)
            self.assertEqual(after.count(changes["largest_label"]), after.count(most))
            self.assertAlmostEqual(changes["largest_share"], after.count(most) / len(after))
            gone = any(before.count(i) >= 0.05 * len(before) for i in set(before) - set(after))
            self.assertEqual(any("label is gone" in text for text in result["warnings"]), gone)
            self.assertEqual(any("one label wins" in text for text in result["warnings"]),
                             len(set(after)) == 1 < len(set(before)))

    def test_strength(self):
        auto = self.solve()["strength"]
        self.assertTrue(auto["automatic"])
        self.assertEqual(auto["nats"], auto["suitable_nats"])
        given = self.solve("--strength", "2")["strength"]
        self.assertAlmostEqual(given["nats"], 2)
        self.assertEqual(given["suitable_nats"], auto["suitable_nats"])
        double = self.solve("--strength-factor", "2")["strength"]
        self.assertAlmostEqual(double["nats"], 2 * auto["nats"])
        self.assertAlmostEqual(self.solve("--temperature", "2")["strength"]["nats"], auto["nats"] / 2,
                               places=5)
        preset = self.solve("--preset", "common")
        self.assertAlmostEqual(preset["strength"]["nats"], 13)
        self.assertFalse(preset["strength"]["automatic"])
        self.assertEqual(any("as strong as suits" in text for text in preset["warnings"]),
                         13 > 4 * auto["nats"])
        one = self.solve("--spatial", "2,0.25", "--strength", "3")["strength"]["nats"]
        self.assertAlmostEqual(one, 2 * 0.25 + 3)
        self.bad("--strength", "weight of its own", "solve", self.image, "--unary", self.unary,
                 "--preset", "common", "--strength", "2")
        self.bad("--normalize", "need weights", "solve", self.image, "--unary", self.unary,
                 "--normalize", "none")

    def test_sweep(self):
        result = self.solve("--explain")
        self.assertEqual([p["factor"] for p in result["sweep"]], [0, .125, .25, .5, 1, 2, 4])
        self.assertEqual(result["sweep"][0]["changed_pixels"], 0)
        now = result["sweep"][4]
        self.assertAlmostEqual(now["strength_nats"], result["strength"]["nats"])
        self.assertEqual(now["changed_pixels"], result["changes"]["pixels_changed"])
        text = self.good("solve", self.image, "--unary", self.unary, "--explain")
        self.assertIn("Would weaker kernels be better?", text)
        self.assertNotIn("sweep", self.solve())


class SolveTest(SolveCase):
    def test_keys(self):
        for method in ("mf", "qp", "lp"):
            result = self.solve("--method", method)
            self.assertLessEqual(KEYS, set(result))
            self.assertEqual([result[k] for k in ("method", "width", "height", "labels",
                                                  "cliques")], [method, WIDTH, HEIGHT, LABELS, 0])
            self.assertEqual(result["lower_bound"] is None, method != "lp")
            self.assertEqual(result["relative_gap"] is None, method != "lp")
            for key in ("setup_s", "solve_s", "polish_s"):
                self.assertGreaterEqual(result[key], 0)
        self.assertLessEqual(KEYS, set(self.certify(self.labels)))
        self.assertEqual(self.solve()["method"], "mf")

    def test_against_enumeration(self):
        """4 x 3 pixels, 2 labels: all 4,096 labellings, with kernels by the formula."""
        places = [(x, y) for y in range(3) for x in range(4)]
        count = range(len(places))
        unary = [[((5 * x + 3 * y) % 7) / 4, ((2 * x + 5 * y + 3) % 7) / 4] for x, y in places]
        pair = [[2 * 0.3 * kernel_value(places[a], places[b], 1.5) for b in count] for a in count]
        optimum = min(
            sum(unary[a][x[a]] for a in count) +
            sum(pair[a][b] for a in count for b in range(a) if x[a] != x[b])
            for x in itertools.product((0, 1), repeat=len(places)))
        self.image = self.write("i.png", formats.png([[(9, 9, 9)] * 4] * 3))
        self.unary = self.write("v.npy", formats.npy(sum(unary, []), (3, 4, 2)))
        options = ("--operator", "exact", "--normalize", "none", "--spatial", "1.5,0.3",
                   "--bilateral", "none")
        # Kernel values are floats, sums are doubles.
        tolerance = 1e-5 * optimum
        for method in ("mf", "qp", "lp"):
            self.assertGreaterEqual(self.solve("--method", method, *options)["energy"],
                                    optimum - tolerance)
        result = self.solve(*options, "-m", "lp", "--gap", "1e-6", "--iterations", "200", "-o", "l.png")
        self.assertAlmostEqual(result["energy"], optimum, delta=tolerance)
        for proven in (result, self.certify("l.png", *options)):
            self.assertLessEqual(proven["lower_bound"], optimum + tolerance)
            self.assertGreater(proven["lower_bound"], 0.98 * optimum)

    def test_energy_is_that_of_the_labels_written(self):
        cliques = self.write("regions.png", formats.number_png(REGIONS))
        for method in ("mf", "qp", "lp"):
            for options in ((), ("--cliques", cliques, "--gamma", "2", "--eta", "5000"),
                            ("--normalize", "none", "--spatial", "1,.1", "--bilateral", "80,13,5")):
                result = self.solve("-m", method, "-o", "l.png", *options)
                checked = self.energy(*options, labels="l.png")
                for key in ("energy", "energy_unary", "energy_pairwise", "energy_cliques"):
                    self.assertEqual(result[key], checked[key])
                self.assertLessEqual(result["energy"], result["energy_before_polish"])
                self.assertLessEqual(result["energy"], result["energy_unary_minimum"])
                self.assertLessEqual(result["energy"], result["energy_best_constant"])

    def test_gap(self):
        floor = self.solve()["unary_floor"]
        for result in (self.solve("-m", "lp"), self.certify(self.labels)):
            gap = (result["energy"] - result["lower_bound"]) / (result["energy"] - floor)
            self.assertAlmostEqual(result["relative_gap"], gap, places=12)
        self.assertEqual(self.certify(self.labels)["energy"], self.energy()["energy"])
        # The labelling of the tests is arbitrary; the certificate says that it is bad.
        self.assertGreater(self.certify(self.labels)["relative_gap"], 0.05)
        text = self.good("certify", self.image, "--unary", self.unary, "--labels", self.labels)
        self.assertIn("better labelling was met", text)

    def test_limits(self):
        result = self.solve("-m", "mf", "--iterations", "3", "--preset", "common")
        self.assertEqual((result["iterations"], result["stop"]), (3, "iterations"))
        for half in ("0.5", "50%"):
            result = self.solve("-m", "lp", "--gap", half)
            self.assertEqual(result["settings"]["gap"], 0.5)
        self.assertEqual(result["stop"], "gap")
        self.assertLessEqual(result["relative_gap"], 0.5)
        result = self.solve("-m", "lp", "--gap", "1e-13", "--time-limit", "0.05")
        self.assertIn(result["stop"], ("time", "gap"))

    def test_start(self):
        best = self.solve("-o", "best.png")
        result = self.solve("--start", "best.png", "--no-polish", "-m", "mf", "-n", "1")
        self.assertLessEqual(result["energy"], best["energy"])
        wrong = [[9] * WIDTH] * HEIGHT
        self.bad(self.write("w.png", formats.number_png(wrong)), "has the label 9", "solve",
                 self.image, "--unary", self.unary, "--start", self.path("w.png"))

    def test_schedules(self):
        for schedule in ("huber", "proximal", "paper"):
            result = self.solve("-m", "lp", "--lp-schedule", schedule, "-n", "20")
            self.assertLessEqual(result["lower_bound"], result["energy"])

    def test_a_constant_labelling_is_told(self):
        heavy = ("--normalize", "none", "--spatial", "4,50", "--bilateral", "80,13,5")
        result = self.solve(*heavy, "-m", "lp")
        self.assertTrue(result["constant"])
        self.assertIn("drown the unaries", result["warnings"][0])
        self.assertEqual(result["energy"], result["energy_best_constant"])
        self.assertLess(result["relative_gap"], 1e-3)
        text = self.good("solve", self.image, "--unary", self.unary, *heavy)
        self.assertIn("drown the unaries", text)
        self.assertNotIn("drown", self.good("solve", self.image, "--unary", self.unary,
                                            "--spatial", "1,.01", "--bilateral", "none"))
        for label in range(LABELS):
            constant = self.write("c.png", formats.number_png([[label] * WIDTH] * HEIGHT))
            text = self.good("certify", self.image, "--unary", self.unary, "--labels", constant,
                             *heavy)
            best = label == result["best_constant_label"]
            self.assertEqual("drown the unaries" in text, best)
            self.assertEqual("better labelling was met" in text, not best)

    def test_summary(self):
        arguments = ("solve", self.image, "--unary", self.unary)
        text = self.good(*arguments, "-m", "lp")
        for words in ("6 x 5 pixels, 3 labels", "strength", "pixels changed", "labels left",
                      "largest label", "energy", "unary", "pairwise", "lower bound", "gap",
                      "no labelling is better by more"):
            self.assertIn(words, text)
        for words in ("clique", "nan"):
            self.assertNotIn(words, text)
        self.assertNotIn("bound", self.good(*arguments))
        self.assertIn("clique", self.good(*arguments, "--cliques", "slic"))
        self.assertEqual(self.good(*arguments, "-q"), "")
        done = self.run_dcrf(*arguments, "-v")
        self.assertIn("iteration 1:", done.stderr)
        self.assertNotIn("nan", done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_explain(self):
        text = self.good("solve", self.image, "--unary", self.unary, "--explain")
        for words in ("spatial kernel joins a pixel to about", "bilateral kernel joins",
                      "The surroundings can overrule", "One label everywhere (label"):
            self.assertIn(words, text)
        cliques = self.write("regions.png", formats.number_png(REGIONS))
        text = self.good("solve", self.image, "--unary", self.unary, "--explain", "--cliques",
                         cliques, "--spatial", "none", "--bilateral", "none")
        self.assertIn("There are 4 cliques", text)
        self.assertIn("Without kernels", text)
        # An isolated sum: at sigma 2, far from borders, 2 pi sigma^2 = 25.1 pixels, one of them
        # the pixel itself.
        n = 24
        image = self.write("g.png", formats.png([[(0, 0, 0)] * n] * n))
        unary = self.write("z.npy", formats.npy([0, 2] * (n * n), (n, n, 2)))
        text = self.good("solve", image, "--unary", unary, "--explain", "--bilateral", "none",
                         "--spatial", "2,1", "--normalize", "none")
        self.assertRegex(text, r"to about (19|20|21) others, up to 4 pixels")
        # Sigmas of a volume are in millimetres.
        scan = self.write("scan.nii", volumes.nifti([0.0] * 300, (10, 10, 3), spacing=(1, 1, 3)))
        unary = self.write("v.npy", formats.npy([0, 2] * 300, (3, 10, 10, 2)))
        text = self.good("solve", scan, "--unary", unary, "--explain", "-o", "v.nii")
        self.assertRegex(text, r"spatial kernel joins a voxel to about \d+ others, up to 4 mm away")
        self.assertIn("apart in value", text)

    def test_trace(self):
        result = self.solve("--trace", "t.csv", "-n", "7", "--gap", "1e-13")
        rows = list(csv.DictReader(io.StringIO(self.read("t.csv").decode())))
        self.assertEqual(list(rows[0]), ["time_s", "iteration", "objective", "energy",
                                         "best_energy", "lower_bound", "relative_gap",
                                         "stage"])
        stages = [row["stage"] for row in rows]
        self.assertEqual(stages, ["candidates"] * stages.count("candidates") + ["solve"] * result["iterations"] + ["finish"])
        self.assertIn("candidates", stages)
        self.assertAlmostEqual(float(rows[-1]["best_energy"]), result["energy"], delta=1e-6 * result["energy"])
        best = [float(row["best_energy"]) for row in rows[:-1]]  # the last is rounded up
        bounds = [float(row["lower_bound"]) for row in rows if row["lower_bound"]]
        self.assertEqual(best, sorted(best, reverse=True))
        self.assertEqual(bounds, sorted(bounds))
        self.solve("--trace", "t.csv", "-m", "mf")
        rows = list(csv.DictReader(io.StringIO(self.read("t.csv").decode())))
        self.assertEqual({row["lower_bound"] for row in rows}, {""})

    def test_threads_change_nothing(self):
        results = []
        for threads in ("1", "3"):
            result = self.solve("--threads", threads, "-o", "l%s.png" % threads)
            results.append((result["energy"], result["lower_bound"]))
        self.assertEqual(results[0], results[1])
        self.assertEqual(self.read("l1.png"), self.read("l3.png"))

    def test_bad_usage(self):
        start = ("solve", self.image, "--unary", self.unary)
        self.bad("--method", "is not one of mf|qp|lp", *start, "--method", "gibbs")
        self.bad("--iterations", "'0' is not above zero", *start, "-n", "0")
        for gap in ("-1", "0%", "%", "1%%", "nan%", "1" * 64):
            self.bad("--gap", "is not a fraction above zero, such as 0.001 or 0.1%", *start, "--gap", gap)
        self.bad("x.jpg", "has to end in .png, .tif, .npy, .nii or .nii.gz", *start, "-o", "x.jpg")
        self.bad("x.npy", "has to end in .png", *start, "--overlay", "x.npy")
        self.bad("no/x.html", "cannot be created", *start, "--report", "no/x.html")
        self.bad("x.png", "named for two outputs", *start, "-o", "x.png", "--overlay", "x.png")
        self.bad("certify", "--labels FILE is missing", "certify", self.image, "--unary",
                 self.unary)


class ConfigTest(SolveCase):
    def test_a_result_repeats_its_run(self):
        options = ("-m", "qp", "--spatial", "2,.25", "--bilateral", "4,30,.125", "--no-polish",
                   "--normalize", "none", "--draws", "2", "--seed", "7", "--iterations", "13")
        first = self.solve(*options, "-o", "first.png")
        self.write("run.json", json.dumps(first).encode())
        again = json.loads(self.good("solve", "--config", "run.json", "-o", "again.png", "--json",
                                     "-"))
        self.assertEqual(self.read("again.png"), self.read("first.png"))
        self.assertEqual(again["settings"], first["settings"])
        for key in ("energy", "energy_before_polish", "iterations", "stop", "objective"):
            self.assertEqual(again[key], first[key])
        self.assertNotIn("output", first["settings"])
        self.assertIs(first["settings"]["no-polish"], True)
        # The command line wins, and other commands take what they know.
        other = json.loads(self.good("solve", "--config", "run.json", "-m", "mf", "--json", "-"))
        self.assertEqual(other["method"], "mf")
        energy = json.loads(self.good("energy", "--config", "run.json", "--labels", "first.png",
                                      "--json", "-"))
        self.assertEqual(energy["energy"], first["energy"])

    def test_forms_of_values(self):
        expected = self.solve("--spatial", "2,.25", "--no-polish", "-n", "3")
        self.write("c.json", json.dumps({
            "image": self.image, "unary": self.unary, "spatial": [2, 0.25], "no-polish": True,
            "iterations": 3, "gap": None, "quiet": False}).encode())
        result = json.loads(self.good("solve", "--config", "c.json", "--json", "-"))
        self.assertEqual(result["energy"], expected["energy"])

    def test_bad_files(self):
        for number, (content, words) in enumerate(formats.MALFORMED_SETTINGS):
            path = self.write("bad%d.json" % number, content)
            self.bad(path, words, "solve", self.image, "--unary", self.unary, "--config", path)
        self.bad("no.json", "No such file", "solve", self.image, "--config", "no.json")


class PresetTest(SolveCase):
    def settings(self, *more):
        return self.solve(*more)["settings"]

    def test_published_weights_are_halved(self):
        for name, spatial, bilateral in (
                ("common", "3,1.5", "80,13,5"), ("weak", "3,1.5", "50,5,5"),
                ("deeplab", "1,1.5", "67,3,2"), ("wide", "1,0.5", "121,5,2"),
                ("saliency", "3,1.5", "60,5,2.5"), ("microscopy", "1,2.5", "10,5,5")):
            settings = self.settings("--preset", name)
            self.assertEqual((settings["spatial"], settings["bilateral"], settings["normalize"]),
                             (spatial, bilateral, "symmetric"))

    def test_rows_of_the_paper(self):
        for name, spatial, bilateral in (
                ("msrc-mf", (4.10, 77.047), (47.79, 4.69, 100)),
                ("msrc-qp", (2.36, 22.89), (48.73, 6.52, 60.50)),
                ("pascal-mf", (1, 29.19), (17.82, 6.14, 32.56)),
                ("pascal-qp", (1, 100), (19.11, 6.08, 55.19))):
            settings = self.settings("--preset", "paper-" + name)
            self.assertEqual(settings["normalize"], "none")
            self.assertEqual(tuple(map(float, settings["spatial"].split(","))), spatial)
            self.assertEqual(tuple(map(float, settings["bilateral"].split(","))), bilateral)
        listed = self.good("presets")
        for words in ("paper-msrc-mf-cliques", "--gamma 54.88 --eta 876.08", "--min-region 100",
                      "paper-pascal-mf-cliques", "--gamma 100 --eta 139.70"):
            self.assertIn(words, listed)

    def test_precedence(self):
        self.write("c.json", b'{"preset": "weak", "spatial": "9,9"}')
        settings = self.settings("--config", "c.json")
        self.assertEqual((settings["spatial"], settings["bilateral"]), ("9,9", "50,5,5"))
        settings = self.settings("--config", "c.json", "--preset", "wide", "--bilateral", "7,7,7")
        self.assertEqual((settings["spatial"], settings["bilateral"]), ("1,0.5", "7,7,7"))
        self.bad("--preset", "did you mean deeplab?", "solve", self.image, "--unary", self.unary,
                 "--preset", "deplab")
        self.bad("--preset", "'dcrf presets' lists", "solve", self.image, "--unary", self.unary,
                 "--preset", "zzzzzzzzzzz")

    def test_every_preset_is_accepted(self):
        names = [line for line in self.good("presets").splitlines() if not line.startswith(" ")]
        self.assertEqual(len(names), 15)
        regions = self.write("regions.png", formats.number_png(REGIONS))
        for name in names:
            self.energy("--preset", name)
            # Other regions do not want the size of the preset's superpixels.
            self.assertEqual(self.energy("--preset", name, "--cliques", regions)["cliques"], 4)


if __name__ == "__main__":
    unittest.main()
