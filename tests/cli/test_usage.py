#!/usr/bin/env python3
"""The command line: help texts, unknown options, bad values."""

import unittest

from case import Case


class ProgramTest(Case):
    def test_version_and_help(self):
        self.assertRegex(self.good("--version"), r"\Adcrf \d+\.\d+\.\d+\n\Z")
        self.assertEqual(self.good("--help"), self.good("help"))
        for command in ("energy", "filter"):
            self.assertIn(command, self.good("--help"))
            text = self.good("help", command)
            self.assertEqual(text, self.good(command, "--help"))
            for option in ("--spatial SIGMA[,W]", "--bilateral SIGMA_XY,SIGMA_RGB[,W]",
                           "[default: 40,8]", "--normalize none|symmetric",
                           "--operator fast|exact", "--threads T"):
                self.assertIn(option, text)
            self.assertLessEqual(max(map(len, text.split("\n"))), 80)
        text = self.good("help", "superpixels")
        for option in ("-o, --output FILE", "--method meanshift|slic", "--range-bandwidth LUV"):
            self.assertIn(option, text)
        self.assertLessEqual(max(map(len, text.split("\n"))), 80)

    def test_usage_errors(self):
        self.bad("usage", "no command given")
        self.bad("enrgy", "did you mean 'energy'?", "enrgy")
        self.bad("zzz", "unknown command", "zzz")
        self.bad("zzz", "unknown command", "help", "zzz")
        self.bad("--zzz", "unknown option", "--zzz")
        self.bad("energy", "IMAGE is missing", "energy")
        self.bad("energy", "--labels FILE is missing", "energy", self.image, "--unary", self.unary)
        self.bad("--unary", "give one of", "energy", self.image, "--labels", self.labels)
        self.bad("--unary", "give only one of", "energy", self.image, "--labels", self.labels,
                 "--unary", self.unary, "--scribbles", self.labels)
        self.bad("filter", "--output FILE is missing", "filter", self.image)
        self.bad("extra.png", "unexpected argument", "energy", self.image, "extra.png")
        self.bad("--unary", "value is missing", "energy", self.image, "--unary")
        self.bad("--unary", "value is missing", "energy", self.image, "--unary", "--labels", "x")
        self.bad("--row-sums", "takes no value", "filter", self.image, "--row-sums=yes")

    def test_unknown_options_suggest_the_nearest(self):
        for wrong, right in (("--spatal", "--spatial"), ("--bilatera", "--bilateral"),
                             ("--normalise", "--normalize"), ("--thread", "--threads"),
                             ("--unary_scale=2", "--unary-scale"), ("--label", "--labels")):
            self.bad(wrong.split("=")[0], "did you mean %s?" % right, "energy", self.image, wrong)
        self.bad("--frobnicate", "'dcrf help energy' lists", "energy", self.image, "--frobnicate")
        self.bad("-x", "unknown option", "energy", self.image, "-x")

    def test_bad_values(self):
        for option, values in {
            "--spatial": ("3,", "0", "3,1,1", "a,b", "0,1", "-1,1", "nan,1", "3,inf", " 3,1",
                          "0x3,1", ""),
            "--bilateral": ("80", "80,0", "80,13,", "80,0,5", "80,13,5,1", "80;13;5"),
            "--normalize": ("both", "", "non"),
            "--operator": ("slow", "EXACT"),
            "--threads": ("-1", "two", "1.5", "", "99999999999999999999999"),
            "--gamma": ("x", "1e999", "automatic"),
            "--strength": ("-1", "nan", "strong", ""),
            "--spatial-share": ("-0.1", "1.1", "half"),
            "--temperature": ("0", "-1", "auto"),
            "--eta": ("0", "-3"),
            "--unary-scale": ("0", "-1"),
            "--layout": ("nhwc",),
            "--unary-kind": ("scores", ""),
            "--confidence": ("0", "1", "1.5", "-1", "high"),
            "--label-count": ("-1", "many"),
            "--prior-unknown": ("maybe", "1.5", "#12345", ""),
            "--scribble-unknown": ("black", "#gg0000", "1e99"),
        }.items():
            for value in values:
                self.bad(option, "'%s' is not " % value, "energy", self.image, option, value)


if __name__ == "__main__":
    unittest.main()
