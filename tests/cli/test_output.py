#!/usr/bin/env python3
"""Outputs appear whole or not at all; failures that are not the input's fault."""

import json
import os
import resource
import subprocess
import unittest

import formats
from case import COMMAND, HEIGHT, WIDTH, Case


class OutputTest(Case):
    def test_links_are_followed_and_kept(self):
        self.write("real.npy", b"old")
        os.symlink("real.npy", self.path("link.npy"))
        self.good("filter", self.image, "--row-sums", "-o", "link.npy")
        self.assertTrue(os.path.islink(self.path("link.npy")))
        self.assertEqual(formats.read_npy(self.read("real.npy"))[0], (HEIGHT, WIDTH))

    def test_a_link_to_nothing_yet(self):
        """What a link leads to is made; the link stays."""
        os.mkdir(self.path("real"))
        os.symlink("real/new.npy", self.path("link.npy"))
        os.symlink(self.path("link.npy"), self.path("second.npy"))
        self.good("filter", self.image, "--row-sums", "-o", "second.npy")
        self.assertTrue(os.path.islink(self.path("link.npy")) and os.path.islink(self.path("second.npy")))
        self.assertEqual(formats.read_npy(self.read("real/new.npy"))[0], (HEIGHT, WIDTH))
        os.symlink("loop.npy", self.path("loop.npy"))
        self.bad("loop.npy", "cannot be created", "filter", self.image, "--row-sums", "-o", "loop.npy")
        os.symlink("none/new.npy", self.path("lost.npy"))
        self.bad("lost.npy", "cannot be created", "filter", self.image, "--row-sums", "-o", "lost.npy")

    def test_two_spellings_of_one_path(self):
        os.mkdir(self.path("folder"))
        os.symlink("folder", self.path("link"))
        os.symlink("a.png", self.path("alias.png"))
        for first, second in (("a.png", "./a.png"), ("a.png", self.path("a.png")), ("a.png", "folder/../a.png"),
                              ("folder/a.png", "link/a.png"), ("alias.png", "a.png"), ("a.png", ".//a.png")):
            self.bad(second, "is named for two outputs", "solve", self.image, "--unary", self.unary, "-o", first,
                     "--overlay", second)
            self.assertFalse(os.path.exists(self.path(first)))
            # Before the image is read.
            self.bad(second, "is named for two outputs", "solve", "none.png", "--unary", self.unary, "-o", first,
                     "--overlay", second)

    def test_files_and_status_agree(self):
        """Where the summary cannot be printed, there is a failure and no file."""
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        start = (self.image, "--unary", self.unary, "--json", "run.json")
        for arguments in (("solve", *start, "-o", "l.png", "--report", "r.html"),
                          ("energy", *start, "--labels", self.labels), ("certify", *start, "--labels", self.labels)):
            before = self.snapshot()
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      cwd=self.folder, check=False)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("standard output: cannot write: No space left", done.stderr)
            self.assertEqual(self.snapshot(), before)

    def test_closed_descriptors(self):
        """What is printed never goes into a file that happened to get the number of a closed one."""
        expected = self.read("image.png")
        for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            for name in ("l.npy", "run.json"):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
            script = "%s solve image.png --unary u.npy -o l.npy --json run.json %s" % (COMMAND, closed)
            done = subprocess.run(["sh", "-c", script], cwd=self.folder, check=False, capture_output=True)
            self.assertEqual(done.returncode, 0, (closed, done.stderr))
            self.assertEqual(formats.read_npy(self.read("l.npy"), "|u1")[0], (HEIGHT, WIDTH))
            json.loads(self.read("run.json"))
        done = subprocess.run(["sh", "-c", COMMAND + " solve none.png --unary u.npy 2>&- 1>&-"], cwd=self.folder,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.read("image.png"), expected)

    def test_permissions_follow_the_mask(self):
        self.good("filter", self.image, "--row-sums", "-o", "y.npy",
                  preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(os.stat(self.path("y.npy")).st_mode & 0o777, 0o640)

    def test_devices_are_written_not_replaced(self):
        self.good("filter", self.image, "--row-sums", "-o", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))

    def test_bad_targets(self):
        start = ("filter", self.image, "--row-sums", "-o")
        self.bad("no/such/y.npy", "cannot be created", *start, "no/such/y.npy")
        self.bad(self.folder, "is a folder", *start, self.folder)
        self.bad("new/", "name of a folder", *start, "new/")

    def test_failed_writes_leave_nothing(self):
        self.write("y.npy", b"keep me")
        start = ("filter", self.image, "--row-sums", "-o")

        def tiny_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        self.bad("y.npy", "cannot write: File too large", *start, "y.npy", status=1,
                 preexec_fn=tiny_files)
        self.bad("z.npy", "cannot write: File too large", *start, "z.npy", status=1,
                 preexec_fn=tiny_files)
        if os.path.exists("/dev/full"):
            self.bad("/dev/full", "No space left", *start, "/dev/full", status=1)
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE,
                                      text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("standard output: cannot write", done.stderr)

    def test_out_of_memory(self):
        """5,000 x 5,000 equal pixels: a small file that does not lie, and does not fit."""
        if "sanitized" in os.environ.get("DCRF_TEST_BUILD", ""):
            self.skipTest("the sanitizer reserves address space")
        n = 5000
        raw = (b"\0" + bytes(3 * n)) * n
        data = (formats.SIGNATURE + formats.ihdr(n, n) +
                formats.chunk(b"IDAT", formats.zlib.compress(raw, 1)) + formats.chunk(b"IEND", b""))
        big = self.write("big.png", data)

        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))

        self.bad(big, "when it is decoded, and there are", "filter", big, "--row-sums", "-o", "y.npy", status=1,
                 preexec_fn=little_memory)

    def test_pipes_in_and_out(self):
        script = ("cat {u} | {c} energy {i} --unary /dev/stdin --labels {l} --json - | cat"
                  .format(c=COMMAND, i=self.image, u=self.unary, l=self.labels))
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(done.stdout), self.energy())


if __name__ == "__main__":
    unittest.main()
