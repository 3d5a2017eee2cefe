#!/usr/bin/env python3
"""Completions and the manual know every option of every command."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from case import COMMAND, Case

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/dcrf.1")


class CompletionTest(Case):
    def commands(self):
        listed = self.good("help").split("Commands:\n")[1].split("\n\n")[0]
        return [name for name in re.findall(r"^  ([a-z]+)", listed, re.M) if name != "help"]

    def options(self, command):
        return re.findall(r"^  (?:-\w, )?--([a-z-]+)", self.good("help", command), re.M)

    def test_every_shell_knows_every_option(self):
        self.assertIn("solve", self.commands())
        scripts = {shell: self.good("completion", shell) for shell in ("bash", "zsh", "fish")}
        for command in self.commands():
            in_zsh = scripts["zsh"].split("        %s)\n" % command)[1].split(" ;;\n")[0]
            in_bash = re.search(r"^        %s\) .*$" % command, scripts["bash"], re.M).group()
            for option in self.options(command):
                self.assertIn("--%s " % option, in_bash)
                self.assertRegex(in_zsh, r"--%s(=|\[|}|')" % option)
                self.assertRegex(scripts["fish"],
                                 r"__fish_seen_subcommand_from %s' -l %s " % (command, option))
            for shell in scripts:
                self.assertIn(command, scripts[shell])

    def test_syntax(self):
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                continue
            path = self.write("script", self.good("completion", shell).encode())
            done = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def complete(self, *words):
        """What bash offers for the last word."""
        script = '%s\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dcrf; printf "%%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script % self.good("completion", "bash"), "bash",
                               "dcrf", *words], capture_output=True, text=True, cwd=self.folder,
                              check=False)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes(self):
        if not shutil.which("bash"):
            self.skipTest("bash is not installed")
        self.assertEqual(self.complete("so"), ["solve"])
        self.assertEqual(self.complete("help", "en"), ["energy"])
        self.assertEqual(self.complete("solve", "--uni"), [])
        self.assertEqual(self.complete("solve", "--una"), ["--unary-dir", "--unary", "--unary-kind", "--unary-scale"])
        self.assertEqual(self.complete("solve", "--method", ""), ["mf", "qp", "lp"])
        self.assertEqual(self.complete("solve", "--preset", "deep"), ["deeplab"])
        self.assertEqual(self.complete("solve", "ima"), ["image.png"])
        self.assertEqual(self.complete("solve", "--unary", "u"), ["u.npy"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])

    def test_manual(self):
        with open(MANUAL, encoding="utf-8") as stream:
            manual = stream.read()
        for command in self.commands():
            self.assertIn(".Cm %s\n" % command, manual)
            for option in self.options(command):
                self.assertRegex(manual, r"Fl -%s\b" % option, (command, option))

    def test_manual_is_that_of_the_tables(self):
        """`python3 docs/site/manual.py build/dcrf >docs/dcrf.1` makes it."""
        maker = os.path.join(os.path.dirname(MANUAL), "site", "manual.py")
        made = subprocess.run([sys.executable, maker, COMMAND], capture_output=True, text=True, check=True).stdout
        with open(MANUAL, encoding="utf-8") as stream:
            self.assertEqual(stream.read(), made)

    def test_bad_shell(self):
        self.bad("SHELL", "is not one of bash|zsh|fish", "completion", "tcsh")
        self.bad("completion", "SHELL is missing", "completion")


if __name__ == "__main__":
    unittest.main()
