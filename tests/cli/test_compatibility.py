#!/usr/bin/env python3
"""--compatibility: energies against the formula, and what is refused."""

import json
import unittest

import formats
from case import LABELLING, LABELS, PIXELS, UNARY, Case, kernel_matrix, unary_energy

TREE = "# pets and the rest\n0 pets 0.5\n1 pets .5  # a cat\npets all 1\n\n2 all 2.25\n"
GROUPS = "all cost 3.75: pets 2\npets cost 1: 0 1\n"  # the same distances
CUTS = "# the same\n.5: 0\n.5: 1  # a cat\n\n 3.25 : 1 0\n"
TREE_MATRIX = [[0, 1, 3.75], [1, 0, 3.75], [3.75, 3.75, 0]]


class CompatibilityTest(Case):
    def energy(self, *arguments):
        return json.loads(self.good("energy", self.image, "--unary", self.unary, "--labels", self.labels, "--operator", "exact",
                                    "--spatial", "2,1.25", "--bilateral", "none", "--json", "-", *arguments))

    def pairs(self, mu):
        label = [LABELLING[y][x] for x, y in PIXELS]
        matrix = kernel_matrix(2)
        count = range(len(PIXELS))
        return 1.25 * sum(matrix[a][b] * mu(label[a], label[b]) for a in count for b in count if a != b)

    def test_energies(self):
        tree = self.write("tree.txt", TREE.encode())
        matrix = self.write("mu.npy", formats.npy([v for row in TREE_MATRIX for v in row], (LABELS, LABELS)))
        cases = {
            "potts": lambda i, j: i != j,
            "linear": lambda i, j: abs(i - j),
            "truncated-linear:1.5": lambda i, j: min(abs(i - j), 1.5),
            "truncated-linear:9": lambda i, j: abs(i - j),
            "tree:" + tree: lambda i, j: TREE_MATRIX[i][j],
            "tree:" + self.write("groups.txt", GROUPS.encode()): lambda i, j: TREE_MATRIX[i][j],
            "tree:" + self.write("mixed.txt", b"pets cost 1: 0 1\r\npets 2 3.25\r\n"): lambda i, j: TREE_MATRIX[i][j],
            "cuts:" + self.write("cuts.txt", CUTS.encode()): lambda i, j: TREE_MATRIX[i][j],
            matrix: lambda i, j: TREE_MATRIX[i][j],
        }
        for text, mu in cases.items():
            result = self.energy("--compatibility", text)
            expected = self.pairs(mu)
            # Kernel values are floats: a hundred of their roundings.
            self.assertAlmostEqual(result["energy_pairwise"], expected, delta=1e-5 * expected, msg=text)
            self.assertAlmostEqual(result["energy"], expected + unary_energy(), delta=1e-5 * expected, msg=text)

    def test_the_stereo_preset(self):
        """The setting of docs/howto/stereo.md that errs least on either pair."""
        values = {"normalize": "symmetric", "spatial": "2,0.3", "bilateral": "12,8,2", "compatibility": "truncated-linear:4",
                  "cliques": "none"}

        def energy(*arguments):
            return json.loads(self.good("energy", self.image, "--unary", self.unary, "--labels", self.labels, "--json", "-", *arguments))

        preset = energy("--preset", "stereo")
        self.good("solve", self.image, "--unary", self.unary, "--preset", "stereo", "-o", "out.png", "--json", "run.json")
        settings = json.loads(self.read("run.json"))["settings"]
        self.assertEqual({name: settings[name] for name in values}, values)
        given = energy(*(word for name, value in values.items() for word in ("--" + name, value)))
        for name in ("energy", "energy_pairwise"):
            self.assertEqual(preset[name], given[name])

    def test_methods_take_them(self):
        for method in ("mf", "qp"):
            self.good("solve", self.image, "--unary", self.unary, "-m", method, "--compatibility", "truncated-linear:2", "-o",
                      "out.png", "-q")

    def test_certificates(self):
        """What is printed is what is checked, and it does not hold for a shorter distance."""
        model = "--unary", self.unary, "--spatial", "2,.4", "--bilateral", "none", "--compatibility"
        for operator in ("exact", "fast"):
            self.good("solve", self.image, *model, "truncated-linear:1.5", "-m", "lp", "--operator", operator, "--certificate", "c.cert",
                      "-o", "out.png", "--json", "run.json")
            run = json.loads(self.read("run.json"))
            found = json.loads(self.good("verify", self.image, *model, "truncated-linear:1.5", "--certificate", "c.cert", "--json", "-"))
            for name in ("energy", "lower_bound", "relative_gap"):
                self.assertEqual(found[name], run[name])
            self.assertEqual(found["pixels_proven"], run["proven"]["pixels"])
            self.bad("c.cert", "longer", "verify", self.image, *model, "truncated-linear:1.25", "--certificate", "c.cert")
            self.bad("c.cert", "another problem", "verify", self.image, *model, "potts", "--certificate", "c.cert")

    def test_what_the_bound_leaves_out(self):
        """Of squares of differences, the cuts between neighbours are below: 1 of 1, 2 of 4."""
        numbers = range(LABELS)
        squares = self.write("squares.npy", formats.npy([float((i - j) ** 2) for i in numbers for j in numbers], (LABELS, LABELS)))
        model = "--unary", self.unary, "--spatial", "2,1.25", "--bilateral", "none", "--operator", "exact"
        solve = "solve", self.image, *model, "-m", "lp", "--compatibility"
        text = self.good(*solve, squares, "-o", "out.png", "--json", "run.json", "--report", "run.html")
        run = json.loads(self.read("run.json"))
        left_out = run["bound_left_out"]
        self.assertAlmostEqual(left_out["distance"], 2, places=6)
        self.assertAlmostEqual(left_out["fraction"], 0.5, places=6)
        words = "leaves out up to 2 of the cost of two labels, up to 50 % of it"
        for output in (text, self.read("run.html").decode()):
            self.assertIn(words, " ".join(output.split()))
        found = json.loads(self.good("certify", self.image, *model, "--labels", self.labels, "--compatibility", squares, "--json", "-"))
        expected = self.pairs(lambda i, j: (i - j) ** 2 - abs(i - j))
        self.assertGreater(expected, 0)
        self.assertAlmostEqual(found["bound_left_out"]["energy"], expected, delta=1e-5 * expected)
        self.assertLessEqual(found["lower_bound"], found["energy"] - found["bound_left_out"]["energy"] * (1 - 1e-6))
        floor = sum(min(UNARY[LABELS * a : LABELS * a + LABELS]) for a in range(len(PIXELS)))
        self.assertAlmostEqual(found["bound_left_out"]["gap"], expected / (found["energy"] - floor), places=5)
        text = self.good("certify", self.image, *model, "--labels", self.labels, "--compatibility", squares)
        self.assertIn("its gap stays above", text)
        in_tiles = self.good("solve", self.image, "--unary", self.unary, "--spatial", ".5,1", "--bilateral", "none", "-m", "lp", "--compatibility",
                             squares, "--tile", "5", "-o", "out.png", "--json", "tiles.json")
        self.assertIn(words, " ".join(in_tiles.split()))
        self.assertIsNone(json.loads(self.read("tiles.json"))["bound_left_out"]["energy"])
        for whole in ("linear", "potts"):
            text = self.good(*solve, whole, "-o", "out.png", "--json", "run.json", "--report", "run.html")
            self.assertNotIn("leaves out", text + self.read("run.html").decode())
            self.assertNotIn("bound_left_out", json.loads(self.read("run.json")))

    def test_refusals(self):
        def refuse(subject, words, text):
            self.bad(subject, words, "solve", self.image, "--unary", self.unary, "-o", "out.png", "--compatibility", text)

        refuse("--compatibility", "above zero", "truncated-linear:0")
        refuse("--compatibility", "'x' is no number", "truncated-linear:x")
        refuse("--compatibility", "'quadratic' is not a compatibility", "quadratic")
        refuse("none.npy", "No such file", "none.npy")
        refuse("none.txt", "No such file", "tree:none.txt")
        refuse("none.txt", "No such file", "cuts:none.txt")
        trees = {
            "cycle": ("0 a 1\n\n1 a 1\n0 1 1\n", "line 4: closes a cycle: label 0 and label 1"),
            "ring": ("0 a 1\n1 a 1\n0 1 1\n2 b 1\n", "line 3: closes a cycle"),
            "loop": ("a a 1\n", "line 1: closes a cycle: a and a"),
            "missing": ("0 1 1\n", "label 0 and label 2 by no path"),
            "apart": ("0 1 1\n1 2 1\nx y 1\n", "label 0 and x by no path"),
            "far": ("0 1 1\n# far\n1 7 1\n", "line 3: there is no label 7; the labels are 0 to 2"),
            "huge": ("0 99999999999999999999 1\n", "line 1: there is no label 99999999999999999999"),
            "minus": ("0 -1 1\n", "line 1: '-1' is neither a label nor a name"),
            "negative": ("0 1 1\n1 2 -1\n", "line 2: '-1' is no finite number"),
            "infinite": ("0 1 inf\n1 2 1\n", "line 1: 'inf' is no finite number"),
            "words": ("0 1\n", "line 1: is neither 'node node length' nor 'group cost COST: members'"),
            "more": ("0 1 2 3\n", "line 1: is neither"),
            "number": ("0 1 far\n", "line 1: 'far' is no finite number"),
            "empty": ("# nothing\n", "label 0 and label 1 by no path"),
            "escape": ("0 \x1b[2J\n", "begins with '0'"),
            "control": ("0 \x1b[2J 1\n", "by no path"),
            "bytes": ("0 1\0", "not a text file"),
            "twice": ("a cost 1: 0 1\nb cost 1: 1 2\n", "line 2: label 1 is in a group already, by line 1"),
            "again": ("a cost 1: 0 0\n", "line 1: label 0 is in a group already, by line 1"),
            "costs": ("a cost 1: 0 1\n\na cost 2: 2\n", "line 3: the group a has a cost already, by line 1"),
            "inner": ("a cost 3: 0 1\nall cost 2: a 2\n", "line 2: the group all costs 2, and a, which is in it, 3"),
            "outer": ("all cost 2: a 2\na cost 3: 0 1\n", "line 1: the group all costs 2, and a, which is in it, 3"),
            "free": ("0 a 1\n1 a 1\nall cost 2: a 2\n", "line 3: the group a in the group all has no cost"),
            "nobody": ("a cost 1:\n", "line 1: the group has no members"),
            "label": ("0 cost 1: 1 2\n", "line 1: a group has a name, and 0 is a label"),
            "price": ("a price 1: 1 2\n", "line 1: is neither"),
            "colon": (": 1 2\n", "line 1: is neither"),
            "debt": ("a cost -1: 0 1 2\n", "line 1: '-1' is no finite number"),
            "self": ("a cost 1: 0 1 a\n", "line 1: closes a cycle: a and a"),
        }
        for name, (text, words) in trees.items():
            self.write(name, text.encode())
            refuse(name, words, "tree:" + name)
        cuts = {
            "no_colon": ("1 0 1\n", "line 1: is not 'LENGTH: labels'; it begins with '1'"),
            "no_length": ("\n: 0 1\n", "line 2: is not 'LENGTH: labels'"),
            "two": ("1 2: 0 1\n", "line 1: is not"),
            "below": ("1: 0\n-2: 1\n", "line 2: '-2' is no finite number"),
            "nan": ("nan: 1\n", "line 1: 'nan' is no finite number"),
            "none": ("1:\n", "line 1: the cut has no labels"),
            "nothing": ("# 1: 0\n", "has no cuts"),
            "out": ("1: 0 3\n", "line 1: there is no label 3; the labels are 0 to 2"),
            "name": ("1: 0 cat\n", "line 1: 'cat' is no label"),
            "double": ("1: 0 1\n1: 2 0 2\n", "line 2: has label 2 twice"),
        }
        for name, (text, words) in cuts.items():
            self.write(name, text.encode())
            refuse(name, words, "cuts:" + name)
        matrices = {
            "wrong": ([0, 1, 1, 0], (2, 2), "3 x 3"),
            "skew": ([0, 1, 2, 2, 0, 1, 2, 1, 0], (3, 3), "not symmetric"),
            "nan": ([0, 1, float("nan"), 1, 0, 1, float("nan"), 1, 0], (3, 3), "nan"),
        }
        for name, (values, shape, words) in matrices.items():
            self.write(name + ".npy", formats.npy(values, shape))
            refuse(name + ".npy", words, name + ".npy")

    def test_the_lp_says_what_it_cannot_take(self):
        """It names the file; the other methods take it."""
        numbers = range(LABELS)

        def matrix(name, mu):
            return self.write(name, formats.npy([float(mu(i, j)) for i in numbers for j in numbers], (LABELS, LABELS)))

        model = "--unary", self.unary, "--spatial", ".5,1", "--bilateral", "none", "--compatibility"
        for file, where in ((matrix("negative.npy", lambda i, j: -abs(i - j)), "-1 at (1, 0)"),
                            (matrix("diagonal.npy", lambda i, j: 1 + abs(i - j)), "1 at (0, 0)")):
            for more in ((), ("--tile", "5")):
                self.bad(file, "LP relaxation needs", "solve", self.image, *model, file, "-m", "lp", "-o", "out.png", *more)
                self.bad(file, where, "solve", self.image, *model, file, "-m", "lp", "-o", "out.png", *more)
            self.bad(file, where, "certify", self.image, *model, file, "--labels", self.labels)
            self.good("solve", self.image, *model, file, "-o", "mf.png", "-q")


if __name__ == "__main__":
    unittest.main()
