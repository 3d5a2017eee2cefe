#!/usr/bin/env python3
"""Proofs for single pixels and certificates: dcrf solve --proof --certificate, verify, certify."""

import json
import os
import random
import signal
import subprocess
import sys
import unittest

import case
import formats
from case import HEIGHT, IMAGE, LABELLING, LABELS, REGIONS, SHARED_DATA, UNARY, WIDTH, Case

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/check_certificate.py")
IMAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../script/verify-images")
MODEL = ("--spatial", "2,.2", "--bilateral", "4,50,.3")


def python_with_numpy():
    for python in ("python3", "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            pass
    return None


class ProofTest(Case):
    def solve(self, *more, operator="exact"):
        self.good("solve", self.image, "--unary", self.unary, "--method", "lp", "--operator", operator, *MODEL,
                  "--certificate", "proof.cert", "--proof", "left.npy", "-o", "found.png", "--json",
                  "run.json", *more)
        return json.loads(self.read("run.json"))

    def verify(self, *more, model=MODEL, image=None, unary=None):
        return json.loads(self.good("verify", image or self.image, "--unary", unary or self.unary,
                                    "--certificate", "proof.cert", "--json", "-", *model, *more))

    def refused(self, words, *more, model=MODEL, image=None, unary=None):
        self.bad("proof.cert", words, "verify", image or self.image, "--unary", unary or self.unary,
                 "--certificate", "proof.cert", *model, *more)

    def test_certificates_hold(self):
        cliques = ("--cliques", self.write("regions.png", formats.number_png(REGIONS)), "--gamma", ".5")
        proven = 0
        for operator in ("exact", "fast"):
            for more in ((), cliques, ("--normalize", "none")):
                run = self.solve(*more, operator=operator)
                found = self.verify(*more, "--labels", "found.png")
                self.assertEqual(found["operator"], operator)
                self.assertEqual(found["pixels"], WIDTH * HEIGHT)
                # What was printed is what is checked, to the last bit.
                self.assertEqual(found["energy"], run["energy"])
                self.assertEqual(found["lower_bound"], run["lower_bound"])
                self.assertEqual(found["relative_gap"], run["relative_gap"])
                other = "exact" if operator == "fast" else "fast"
                self.refused("operator", *more, "--operator", other)
                self.verify(*more, "--operator", operator)
                self.assertAlmostEqual(found["labels_energy"], found["energy"], delta=1e-9)
                self.assertLessEqual(found["lower_bound"], found["energy"])
                self.assertEqual(found["pixels_proven"], run["proven"]["pixels"])
                proven += run["proven"]["pixels"]
                self.assertEqual((found["pixels_right"], found["pixels_wrong"]),
                                 (found["pixels_proven"], 0))
                left = formats.read_npy(self.read("left.npy"), "|u1")
                shape, numbers = left[0], list(left[1])
                self.assertEqual(tuple(shape), (HEIGHT, WIDTH))
                self.assertEqual(numbers.count(1), run["proven"]["pixels"])
                self.assertTrue(all(1 <= number <= LABELS for number in numbers))
        self.assertGreater(proven, WIDTH * HEIGHT)

    def test_what_is_trusted(self):
        """The words say what a certificate is about: the formula, or the matrix that a lattice is."""
        for operator, words in (("exact", "for the exact operator: the kernels were computed here."),
                                ("fast", "for the fast operators: it is about the matrix that the lattice built here is (its\n"
                                         "hash is the certificate's), not about the Gaussians that it stands for.")):
            self.solve(operator=operator)
            said = self.good("verify", self.image, "--unary", self.unary, "--certificate", "proof.cert", *MODEL)
            self.assertTrue(said.startswith("The certificate holds, " + words + "\n"), said)

    def test_other_problems_are_refused(self):
        self.solve()
        self.verify()
        other = [[(r, g, b ^ 1) for r, g, b in row] for row in IMAGE]
        self.refused("image", image=self.write("other.png", formats.png(other)))
        unary = list(UNARY)
        unary[7] += 0.125
        self.refused("unary", unary=self.write("other.npy", formats.npy(unary, (HEIGHT, WIDTH, LABELS))))
        self.refused("sigma", model=("--spatial", "2,.2", "--bilateral", "4,51,.3"))
        self.refused("weight", model=("--spatial", "2,.3", "--bilateral", "4,50,.3"))
        self.refused("kernels", model=("--spatial", "2,.2", "--bilateral", "none"))
        self.refused("normalization", "--normalize", "none")
        whole = self.read("proof.cert")
        for place in (9, 40, len(whole) // 2, len(whole) - 1):
            self.write("proof.cert", whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1:])
            self.refused("checksum")
        self.write("proof.cert", whole[:-1])
        self.refused("certificate")
        self.write("proof.cert", b"something else")
        self.refused("certificate")

    def test_wrong_labels_are_found(self):
        run = self.solve()
        found = self.verify("--labels", self.labels)
        foreign = json.loads(self.good("certify", self.image, "--unary", self.unary, "--labels",
                                       self.labels, "--operator", "exact", *MODEL, "--json", "-"))
        best = formats.read_png(self.read("found.png"))[4]
        self.assertGreater(found["pixels_wrong"], 0)
        self.assertGreater(foreign["pixels_wrong"], 0)
        self.assertLessEqual(found["pixels_wrong"] + found["pixels_right"], WIDTH * HEIGHT)
        self.assertGreater(found["labels_energy"], run["energy"])
        if run["proven"]["pixels"] == WIDTH * HEIGHT:
            differ = sum(a != (b,) for one, other in zip(best, LABELLING) for a, b in zip(one, other))
            self.assertEqual(found["pixels_wrong"], differ)

    def test_picture_and_words(self):
        text = self.good("solve", self.image, "--unary", self.unary, "--method", "lp", *MODEL, "--proof",
                         "left.png")
        self.assertIn("proven", text)
        self.assertTrue(self.read("left.png").startswith(b"\x89PNG"))
        self.bad("--proof", "lp", "solve", self.image, "--unary", self.unary, "--proof",
                 "x.png")
        self.bad("--certificate", "lp", "solve", self.image, "--unary", self.unary, "--method", "qp",
                 "--certificate", "x.cert")

    def noise(self):
        side, chance = 24, random.Random(1)
        return (self.write("noise.png", formats.number_png([[chance.randrange(256) for _ in range(side)] for _ in range(side)])),
                self.write("noise.npy", formats.npy([chance.random() for _ in range(3 * side * side)], (side, side, 3))))

    def test_a_certificate_that_was_not_made(self):
        """A run that got SIGINT while it was far from a proof: all else is written, the status says what is not, and a file that
        was there stays."""
        image, unary = self.noise()
        files = ("found.png", "left.npy", "run.json")
        for before in (None, b"an older one"):
            if before:
                self.write("proof.cert", before)
            with subprocess.Popen([case.COMMAND, "solve", image, "--unary", unary, "--unary-kind", "energies", "--method", "lp", "--spatial", "3,1",
                                   "--bilateral", "9,60,.5", "--gap", "1e-15", "--iterations", "100000000", "-o", files[0], "--proof",
                                   files[1], "--json", files[2], "--certificate", "proof.cert", "--verbose"], cwd=self.folder, text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
                while "iteration 1:" not in run.stderr.readline() and run.poll() is None:
                    pass
                run.send_signal(signal.SIGINT)
                said = run.stderr.read()
                self.assertEqual(run.wait(timeout=case.HANG_S), 3, said)
            self.assertEqual(said.splitlines()[-1], "dcrf: --certificate proof.cert: not written: interrupted before there was a proof; "
                             "everything else was written")
            self.assertEqual(os.path.exists(self.path("proof.cert")) and self.read("proof.cert"), before or False)
            for name in files:
                os.remove(self.path(name))

    def test_a_check_that_takes_too_long(self):
        """The clock begins with the command, so that this time is over before the check begins: then nothing is known."""
        self.image, self.unary = self.noise()
        self.solve("--unary-kind", "energies")
        self.bad("proof.cert", "the time limit ended while ", "verify", self.image, "--unary", self.unary,
                 "--unary-kind", "energies", "--certificate", "proof.cert", *MODEL, "--time-limit", "1e-9", status=1)

    def test_enormous_weights(self):
        """Rounding errors of the pairs are larger than all unaries then: less is proven, never less than the unaries alone prove, and both
        checkers accept it."""
        floor = sum(min(UNARY[k:k + LABELS]) for k in range(0, len(UNARY), LABELS))
        python, image = python_with_numpy(), self.write("image.npy", formats.npy([c for row in IMAGE for rgb in row for c in rgb],
                                                                                 (HEIGHT, WIDTH, 3)))
        for weight in ("1e6", "1e12", "1e20", "3.4e38"):
            for normalize in ("none", "symmetric"):
                model = ("--spatial", "2," + weight, "--bilateral", "4,50," + weight, "--normalize", normalize)
                run = self.solve(*model)
                found = self.verify(model=model)
                for number in ("energy", "lower_bound"):
                    self.assertEqual(found[number], run[number])
                self.assertGreater(run["lower_bound"], floor - 1e-9)
                if python:
                    done = subprocess.run([python, SCRIPT, self.unary, self.path("proof.cert"), "-", image], capture_output=True, text=True,
                                          check=False)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_labels_excluded_again_and_again(self):
        """A proof whose rounds need labels that were excluded in several passes between them."""
        folder = os.path.join(SHARED_DATA, "eval-set-corel")
        if not os.path.isdir(folder):
            self.skipTest("no shared data")
        with open(os.path.join(folder, "dataset.json")) as file:
            scale = json.load(file)["unary"]["energy_per_unit"]
        problem = (os.path.join(folder, "images/045.png"), "--unary", os.path.join(folder, "unaries/045.npy"),
                   "--unary-kind", "energies", "--unary-scale", repr(scale), "--preset", "common", "--quiet")
        solved = self.good("solve", *problem, "-m", "lp", "-t", "120", "--certificate", "proof.bin", "--json", "-")
        checked = self.good("verify", *problem, "--certificate", "proof.bin", "--json", "-")
        for number in ("energy", "lower_bound"):
            self.assertEqual(json.loads(solved)[number], json.loads(checked)[number])

    @unittest.skipUnless(os.path.isdir(SHARED_DATA), "no shared data")
    def test_a_proof_is_no_less_than_a_certificate(self):
        """Wide kernels that are not normalized: rounding to float takes half of the LP's bound."""
        folder = os.path.join(SHARED_DATA, "eval-set-corel")
        with open(os.path.join(folder, "dataset.json")) as file:
            scale = json.load(file)["unary"]["energy_per_unit"]
        problem = (os.path.join(folder, "images/010.png"), "--unary", os.path.join(folder, "unaries/010.npy"),
                   "--unary-kind", "energies", "--unary-scale", repr(scale), "--preset", "wide", "--normalize", "none",
                   "--quiet", "-m", "lp", "-n", "24", "--json", "-")
        plain, proof, certificate, both = (json.loads(self.good("solve", *problem, *more)) for more in (
            (), ("--proof", "left.png"), ("--certificate", "proof.bin"), ("--proof", "left.png", "--certificate", "proof.bin")))
        self.assertGreater(certificate["proven"]["pixels"], plain["proven"]["pixels"])
        self.assertGreaterEqual(proof["proven"]["pixels"], certificate["proven"]["pixels"])
        self.assertLessEqual(proof["relative_gap"], certificate["relative_gap"])
        # The certificate alone, and a picture besides it, are the same proof. It keeps the labelling that the proof finds.
        self.assertEqual(both["proven"]["pixels"], certificate["proven"]["pixels"])
        for run in (proof, certificate, both):
            self.assertLessEqual(run["energy"], 5265.858)

    def test_printed_is_verified(self):
        """As script/verify-images does it on all images of both data sets, which are listed so that a run can go on."""
        if not os.path.isdir(SHARED_DATA):
            self.skipTest("no shared data")
        command = [sys.executable, IMAGES, SHARED_DATA, "--only", "002,001", "--iterations", "3", "--command", case.COMMAND, "--save",
                   self.path("list")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("verified = printed on 2 of 2 images", done.stdout)
        self.write("list", b"001 same\n002 DIFFERENT\n")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("verified = printed on 1 of 2 images", done.stdout)

    def test_script(self):
        python = python_with_numpy()
        if not python:
            self.skipTest("no numpy")
        image = self.write("image.npy", formats.npy([c for row in IMAGE for rgb in row for c in rgb],
                                                    (HEIGHT, WIDTH, 3)))
        run = self.solve()
        command = [python, SCRIPT, self.unary, self.path("proof.cert"), "-", image]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"{run['proven']['pixels']} of {WIDTH * HEIGHT} pixels proven", done.stdout)
        # Which model it is about is for the reader to compare.
        self.assertEqual(done.stdout.splitlines()[:3], [
            f"{WIDTH} x {HEIGHT} pixels, {LABELS} labels, exact operator, no cliques",
            "kernel: weight 0.2, sigmas 2, 2, symmetric normalization",
            "kernel: weight 0.3, sigmas 4, 4, 50, 50, 50, symmetric normalization"])
        self.solve("--normalize", "none")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertIn("kernel: weight 0.2, sigmas 2, 2, no normalization\n", done.stdout)
        self.solve()
        # Another image, other unaries, one changed byte.
        for change in ([python, SCRIPT, self.unary, self.path("proof.cert"), "-", "-"],
                       [python, SCRIPT, image, self.path("proof.cert"), "-", image]):
            done = subprocess.run(change, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("refused", done.stderr)
        data = bytearray(self.read("proof.cert"))
        data[100] ^= 1
        self.write("proof.cert", bytes(data))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertIn("refused", done.stderr)
        with open(SCRIPT, encoding="utf-8") as stream:
            self.assertLessEqual(len(stream.readlines()), 350)  # to be read in ten minutes


if __name__ == "__main__":
    unittest.main()
