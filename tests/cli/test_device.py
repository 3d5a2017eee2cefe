#!/usr/bin/env python3
"""--device and dcrf devices: with a device that is none (tests/device/fake_backend.c), and without any."""

import json
import os
import re
import shutil
import subprocess
import unittest

import datasets
import formats
from case import COMMAND, HANG_S, Case

FAKE = os.environ["FAKE_BACKEND"]
LIBRARY = "libdcrf-cuda.so.0"
EXACT = ("--operator", "exact", "--spatial", "2,0.3", "--bilateral", "4,50,0.4")


def environment(library=FAKE, **more):
    return {"env": {**os.environ, "DCRF_CUDA_LIBRARY": library, **more}}


class DeviceCase(Case):
    def solve(self, *more, **how):
        return self.good("solve", self.image, "--unary", self.unary, *EXACT, *more, **how)

    def result(self, *more, **how):
        return json.loads(self.solve("--json", "-", *more, **how))


class WithoutDevice(DeviceCase):
    def test_list(self):
        lines = self.good("devices", **environment("/nowhere/no.so")).splitlines()
        self.assertRegex(lines[0], r"^cpu +(c|neon|avx2|avx512), \d+ threads?$")
        self.assertRegex(lines[1], r"^cuda +none: DCRF_CUDA_LIBRARY: /nowhere/no\.so: ")
        self.assertEqual(len(lines), 2)

    def test_no_library(self):
        """Every command says so, before it writes anything."""
        solve = ("solve", self.image, "--unary", self.unary, "-o", "out.png")
        datasets.make(self.path("data"))
        for arguments in (
            solve,
            ("energy", self.image, "--unary", self.unary, "--labels", self.labels),
            ("certify", self.image, "--unary", self.unary, "--labels", self.labels),
            ("filter", self.image, "-o", "out.npy"),
            ("batch", "data", "--out", "out"),
            ("tune", "data", "--split", "val", "--held-out", "none", "--budget", "2", "--out", "out"),
        ):
            self.bad("--device cuda", "DCRF_CUDA_LIBRARY: /nowhere/no.so: ", *arguments, "--device", "cuda", status=1,
                     **environment("/nowhere/no.so"))
            self.assertFalse(os.path.exists(self.path("out")), arguments)
        # As it is for most: there is no such library at all.
        if " none: there is no GPU support" in self.good("devices"):
            self.bad("--device cuda", "there is no GPU support: ", *solve, "--device", "cuda", status=1)

    def test_wrong_library(self):
        solve = ("solve", self.image, "--unary", self.unary, "-o", "out.png", "--device", "cuda")
        self.write("text.so", b"no library\n")
        self.bad("--device cuda", "text.so", *solve, status=1, **environment(self.path("text.so")))
        self.bad("--device cuda", "install both from one build", *solve, status=1, **environment("libm.so.6"))
        self.bad("--device cuda", "install both from one build", *solve, status=1, **environment(FAKE_VERSION="4711"))
        self.bad("--device cuda", "there is no fake driver", *solve, status=1, **environment(FAKE_DEVICES="none"))

    def devices(self, program, name=None, **more):
        done = subprocess.run([name or program, "devices"], executable=program, capture_output=True, text=True, timeout=HANG_S, check=True, **more)
        return done.stdout

    # It is looked for where the program is, not where its caller says it is.
    def test_the_library_beside_the_program(self):
        os.makedirs(self.path("own"))
        shutil.copy(FAKE, self.path("own/" + LIBRARY))
        without = {name: value for name, value in os.environ.items() if name != "DCRF_CUDA_LIBRARY"}
        self.assertNotIn("fake", self.devices(COMMAND, self.path("own/dcrf"), env=without))
        program = shutil.copy(COMMAND, self.path("own/dcrf"))
        self.assertIn("fake", self.devices(program, "/nowhere/dcrf", env=without))

    # Of a program that runs with the rights of another, the environment is not asked for code.
    @unittest.skipUnless(os.geteuid() == 0, "skipped: needs root")
    def test_programs_with_rights(self):
        if os.environ.get("DCRF_TEST_BUILD") == "sanitized":
            self.skipTest("skipped: sanitizers refuse to run with the rights of another")
        program = shutil.copy(COMMAND, self.path("dcrf"))
        os.chmod(self.folder, 0o755)
        self.assertIn("fake", self.devices(program, **environment()))
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("skipped: the file system takes no rights from files")
        self.assertNotIn("fake", self.devices(program, **environment()))

    def test_names(self):
        solve = ("solve", self.image, "--unary", self.unary, "-o", "out.png")
        for name in ("gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "cuda:1 "):
            self.bad("--device", "'%s' is not a device; devices are cpu, cuda and cuda:N" % name, *solve,
                     "--device", name, **environment())
        self.bad("--device", "is not a name: it is empty", *solve, "--device", "")
        self.bad("--device cuda:2", "there is no device cuda:2: there are 2", *solve, "--device", "cuda:2", status=1,
                 **environment())

    def test_config(self):
        self.write("c.json", json.dumps({"device": "cuda:1"}).encode())
        solve = ("solve", self.image, "--unary", self.unary, "--config", "c.json")
        self.bad("c.json", "--device cuda:1: DCRF_CUDA_LIBRARY: ", *solve, status=1, **environment("/nowhere/no.so"))
        self.assertIn(", on cuda:1\n", self.good(*solve, **environment()))
        self.assertNotIn(" on c", self.good(*solve, "--device", "cpu", **environment()))

    def test_cpu_is_what_there_was(self):
        self.solve("-o", "a.png", "--marginals", "a.npy")
        self.solve("-o", "b.png", "--marginals", "b.npy", "--device", "cpu", **environment("/nowhere/no.so"))
        self.assertEqual(self.read("a.png"), self.read("b.png"))
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))
        result = self.result("--device", "cpu")
        self.assertNotIn("device", result)
        self.assertEqual(result["settings"]["device"], "cpu")

    def test_verify_has_none(self):
        done = self.run_dcrf("verify", self.image, "--unary", self.unary, "--certificate", "x", "--device", "cuda")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--device", done.stderr)
        self.assertIn("runs on the CPU", re.sub(r"\s+", " ", self.good("help", "verify")))


class WithDevice(DeviceCase):
    def test_list(self):
        lines = self.good("devices", **environment()).splitlines()
        self.assertEqual(lines[1:], ["cuda:0    fake 0; 3.0 GiB, 1.0 GiB of them free",
                                     "cuda:1    fake 1; 3.0 GiB, 1.0 GiB of them free"])
        self.assertRegex(self.good("devices", **environment(FAKE_DEVICES="0")), "\ncuda +none: there is no device\n$")
        self.assertIn("refuses describe", self.good("devices", **environment(FAKE_FAILURE="describe")))

    def test_same_answers(self):
        for method in ("mf", "qp", "lp"):
            here = self.result("--method", method, "-o", "a.png")
            there = self.result("--method", method, "-o", "b.png", "--device", "cuda", **environment())
            self.assertEqual(there["device"], "cuda:0")
            self.assertEqual(self.read("a.png"), self.read("b.png"))
            self.assertAlmostEqual(there["energy"], here["energy"], delta=1e-5)
            self.assertEqual(there["iterations"] > 0, here["iterations"] > 0)
            if method == "lp":
                self.assertLessEqual(there["lower_bound"], there["energy"])
                self.assertAlmostEqual(there["lower_bound"], here["lower_bound"], delta=0.01)

    def test_energy_and_certify(self):
        here = self.energy(*EXACT)
        there = json.loads(self.good("energy", self.image, "--unary", self.unary, "--labels", self.labels, "--json", "-",
                                     *EXACT, "--device", "cuda:1", **environment()))
        self.assertEqual(there.pop("device"), "cuda:1")
        self.assertAlmostEqual(there["energy"], here["energy"], delta=1e-5)
        self.assertIn("\ncomputed on cuda:0\n", self.good(
            "energy", self.image, "--unary", self.unary, "--labels", self.labels, "--device", "cuda", **environment()))
        text = self.good("certify", self.image, "--unary", self.unary, "--labels", self.labels, *EXACT, "--device",
                         "cuda", **environment())
        self.assertTrue(text.endswith(" s, on cuda:0\n"), text)

    def test_filter(self):
        self.good("filter", self.image, *EXACT, "-o", "a.npy")
        self.good("filter", self.image, *EXACT, "-o", "b.npy", "--device", "cuda", **environment())
        here, there = (formats.read_npy(self.read(name)) for name in ("a.npy", "b.npy"))
        self.assertEqual(here[0], there[0])
        self.assertNotEqual(self.read("a.npy"), b"")
        # Sums of 30 floats up to 255 with weights below 1.
        for a, b in zip(here[1], there[1]):
            self.assertAlmostEqual(a, b, delta=1e-3)

    def test_report_and_repetition(self):
        result = self.result("--device", "cuda:1", "--report", "r.html", **environment())
        page = self.read("r.html").decode()
        self.assertIn(" threads, on cuda:1, dcrf ", page)
        self.assertIn("--device cuda:1", page)
        self.assertEqual(result["settings"]["device"], "cuda:1")
        self.write("run.json", json.dumps(result).encode())
        again = json.loads(self.good("solve", "--config", "run.json", "--json", "-", **environment()))
        self.assertEqual(again["device"], "cuda:1")
        self.assertEqual(again["energy"], result["energy"])

    def test_certificate_needs_no_device(self):
        self.result("--method", "lp", "--certificate", "c.cert", "--device", "cuda", **environment())
        text = self.good("verify", self.image, "--unary", self.unary, "--certificate", "c.cert", *EXACT,
                         **environment("/nowhere/no.so"))
        self.assertIn("The certificate holds", text)

    def test_failures(self):
        solve = ("solve", self.image, "--unary", self.unary, "-o", "out.png", "--device", "cuda")
        for subject, entry in ((self.image, "operator_new"), ("solver", "mean_field_step"), ("solver", "disagreements")):
            self.bad(subject, "the fake device refuses " + entry, *solve, status=1, **environment(FAKE_FAILURE=entry))


class DataSets(DeviceCase):
    def setUp(self):
        super().setUp()
        self.names = datasets.make(self.path("data"))

    def batch(self, out, *more, methods="mf5", **how):
        return self.good("batch", "data", "--methods", methods, "--out", out, "--curves", "0", "--pictures", "1",
                         *EXACT, *more, **how)

    def stored(self, out, name):
        return json.loads(self.read("%s/results/mf5/%s.json" % (out, name)))

    def test_batch(self):
        here = self.batch("a")
        self.assertNotIn("computed on", here)
        there = self.batch("b", "--device", "cuda", "--jobs", "3", **environment())
        self.assertIn("\ncomputed on cuda\n", there)
        self.assertIn("cuda", self.read("b/report.html").decode())
        for name in self.names:
            a, b = (self.stored(out, name) for out in "ab")
            self.assertAlmostEqual(a["energy"], b["energy"], delta=1e-4)
            self.assertNotIn("device", a["settings"])
            self.assertEqual(b["settings"]["device"], "cuda")

    def test_results_of_a_device_are_its_own(self):
        """A number changes nothing; the CPU's results are not taken for a GPU's, nor the other way."""
        stamp = lambda: os.stat(self.path("a/results/mf5/%s.json" % self.names[0])).st_mtime_ns
        self.batch("a", "--device", "cuda", **environment())
        first = stamp()
        self.batch("a", "--device", "cuda:1", **environment())
        self.assertEqual(stamp(), first)
        self.batch("a")
        self.assertNotEqual(stamp(), first)

    def test_workers_take_devices_in_turn(self):
        """Where one device refuses, only the others' images are done."""
        self.batch("a", "--device", "cuda", "--jobs", "2", **environment(FAKE_DEVICES="1"))
        done = self.run_dcrf("batch", "data", "--methods", "mf5", "--out", "b", "--curves", "0", "--device", "cuda",
                             "--jobs", "2", **environment(FAKE_FAILURE="open 1"))
        self.assertIn("--device cuda:1: the fake device refuses open 1", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_tune(self):
        arguments = ("tune", "data", "--split", "val", "--held-out", "none", "--method", "mf5", "--budget", "3",
                     "--jobs", "2", *EXACT, "--out")
        self.good(*arguments, "a")
        self.good(*arguments, "b", "--device", "cuda", **environment())
        logs = [self.read(out + "/log.csv").decode().splitlines() for out in "ab"]
        self.assertEqual(len(logs[0]), len(logs[1]))
        self.assertEqual(logs[0][1].split(",")[:6], logs[1][1].split(",")[:6])


if __name__ == "__main__":
    unittest.main()
