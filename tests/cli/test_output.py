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

        self.bad(big, "out of memory", "filter", big, "--row-sums", "-o", "y.npy", status=1,
                 preexec_fn=little_memory)

    def test_pipes_in_and_out(self):
        script = ("cat {u} | {c} energy {i} --unary /dev/stdin --labels {l} --json - | cat"
                  .format(c=COMMAND, i=self.image, u=self.unary, l=self.labels))
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(done.stdout), self.energy())


if __name__ == "__main__":
    unittest.main()
