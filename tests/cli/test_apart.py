#!/usr/bin/env python3
"""No output of any command replaces what the command reads, or another output."""

import json
import os
import re
import subprocess
import unittest

import datasets
from case import COMMAND, Case

MODEL = ["IMAGE", "--unary", "--labels-prior", "--prior-confidence", "--prior-sure", "--scribbles", "--classes", "--compatibility", "--cliques",
         "--config"]
# What every command reads and writes; help texts are compared with it.
COMMANDS = {
    "solve": (MODEL + ["--palette", "--start"],
              ["--output", "--overlay", "--boundaries", "--confidence-map", "--proof", "--certificate", "--marginals",
               "--trace", "--json", "--report"]),
    "certify": (MODEL + ["--labels"], ["--json"]),
    "verify": (MODEL + ["--labels", "--certificate"], ["--json"]),
    "energy": (MODEL + ["--labels"], ["--json"]),
    "filter": (["IMAGE", "--input"], ["--output"]),
    "superpixels": (["IMAGE"], ["--output", "--boundaries"]),
    "batch": (["DATASET", "--compatibility", "--cliques", "--config"], ["--out"]),
    "tune": (["DATASET", "--compatibility", "--cliques", "--config"], ["--out"]),
}
WITHOUT_FILES = {"completion", "devices", "presets"}
SPELLINGS = ["in.dat", "./in.dat", "folder/../in.dat", "folder/back/in.dat", "symlink", "chain", "hard"]


REQUIRED = {"certify": {"--labels": "l.png"}, "energy": {"--labels": "l.png"}, "verify": {"--certificate": "c"},
            "filter": {"--output": "o.npy"}, "superpixels": {"--output": "o.npy"}}


def given(option, value):
    return [value] if option.isupper() else [option, value]


class ApartTest(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("folder"))
        os.symlink("..", self.path("folder/back"))
        self.write("in.dat", b"{}")
        os.symlink("in.dat", self.path("symlink"))
        os.symlink("symlink", self.path("chain"))
        os.link(self.path("in.dat"), self.path("hard"))

    def test_the_table_is_whole(self):
        """Every option whose form names a file, and every command."""
        help_text = self.good("--help")
        known = set(COMMANDS) | WITHOUT_FILES
        for name in known:
            self.assertRegex(help_text, r"(?m)^  %s " % name)
        listed = set(re.findall(r"(?m)^  ([a-z]+)  +\S", help_text)) - {"help"}
        self.assertEqual(listed, known)
        for command, (inputs, outputs) in COMMANDS.items():
            text = self.good("help", command)
            named = set(re.findall(r"(?m)^  (?:-[a-z], )?(--[a-z-]+) \S*(?:FILE|FOLDER|LABELS)", text))
            named |= set(re.findall(r"(?m)^  (IMAGE|DATASET) ", text))
            self.assertEqual(named, set(inputs + outputs), command)

    def arguments(self, command, files):
        """The command with these options, and what else it must have."""
        every = {"IMAGE": "none.png", **REQUIRED.get(command, {}), **files}
        return [command] + [a for option, value in every.items() for a in given(option, value)]

    def test_outputs_and_inputs(self):
        for command, (inputs, outputs) in COMMANDS.items():
            for output in outputs if command not in ("batch", "tune") else []:
                for read in inputs:
                    for spelling in SPELLINGS + [self.path("in.dat")] if output == outputs[0] else SPELLINGS[:1]:
                        with self.subTest(command=command, output=output, read=read, spelling=spelling):
                            self.bad(spelling, "is the same file as %s in.dat, which would be replaced" % read,
                                     *self.arguments(command, {read: "in.dat", output: spelling}))
                            self.bad("in.dat", "is the same file as %s %s, which" % (read, spelling),
                                     *self.arguments(command, {read: spelling, output: "in.dat"}))

    def test_files_behind_a_prefix(self):
        self.bad("./in.dat", "is the same file as --compatibility tree:in.dat, which would be replaced",
                 *self.arguments("solve", {"--compatibility": "tree:in.dat", "--json": "./in.dat"}))
        self.bad("./in.dat", "is the same file as --compatibility cuts:in.dat, which would be replaced",
                 *self.arguments("solve", {"--compatibility": "cuts:in.dat", "--json": "./in.dat"}))

    def test_two_outputs(self):
        os.symlink("new.dat", self.path("newlink"))
        for command, (_, outputs) in COMMANDS.items():
            for k, output in enumerate(outputs):
                for other in outputs[:k]:
                    for first, second in (("new.dat", "./new.dat"), ("newlink", "new.dat"), ("hard", "in.dat"),
                                          ("-", "-")):
                        self.bad(second, "is named for two outputs: it is the same file as %s %s" % (other, first),
                                 *self.arguments(command, {other: first, output: second}))

    def test_the_standard_output(self):
        """What is appended to an input by the shell is its end, too."""
        script = "%s energy image.png --unary u.npy --labels labels.png --json - >> u.npy" % COMMAND
        before = self.snapshot()
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--json -: is the same file as --unary u.npy", done.stderr)
        self.assertEqual(self.snapshot(), before)

    def test_what_stays_allowed(self):
        start = ("energy", self.image, "--unary", self.unary, "--labels", self.labels)
        for _ in range(2):  # its own older output
            self.good(*start, "--json", "run.json")
        self.write("slic", b"of the user, and not read")
        self.good(*start, "--cliques", "slic", "--json", "slic")
        # The standard input and output have one name, and a file of that name another.
        self.write("-", self.read("u.npy"))
        for name in ("-", "./-"):
            with open(self.unary, "rb") as stream:
                self.good("energy", self.image, "--unary", name, "--labels", self.labels, "--json", "-", stdin=stream)
        self.good("solve", self.image, "--unary", self.unary, "--json", "-", "--trace", "/dev/null",
                  stdin=subprocess.DEVNULL)

    def frames(self):
        for folder, content in (("frames", "image.png"), ("maps", "labels.png")):
            os.mkdir(self.path(folder))
            for name in ("a.png", "b.png"):
                self.write(os.path.join(folder, name), self.read(content))
        return {name: self.read(name) for name in ("frames/a.png", "frames/b.png", "maps/a.png", "maps/b.png")}

    def test_folders_of_frames(self):
        before = self.frames()
        os.symlink("frames", self.path("other"))
        video = ("solve", "frames", "--labels-prior", "maps", "--temporal", "1", "--quiet")
        for option in ("--output", "--overlay"):
            for spelling in ("frames", "frames/", "./maps/../frames/", "other/", "maps/", self.path("frames/")):
                done = self.run_dcrf(*video, option, spelling)
                self.assertEqual(done.returncode, 2, (option, spelling))
                self.assertIn("which would be replaced", done.stderr)
        self.bad("./new/", "is named for two outputs", *video, "-o", "new/", "--overlay", "./new/")
        # Links in a folder of results lead nowhere.
        os.mkdir(self.path("out"))
        os.symlink("../frames/a.png", self.path("out/b.png"))
        self.good(*video, "-o", "out")
        self.assertFalse(os.path.islink(self.path("out/b.png")))
        self.assertEqual({name: self.read(name) for name in before}, before)

    def test_several_pictures(self):
        """An output of one picture is no input of another."""
        before = self.frames()
        many = ("solve", "frames/a.png", "frames/b.png", "--labels-prior-dir", "maps", "--quiet")
        for more in (("-o", "frames/"), ("-o", "maps/"), ("-o", "out/", "--overlay", "maps"), ("-o", "out/", "--overlay", "out")):
            self.assertEqual(self.run_dcrf(*many, *more).returncode, 2, more)
        os.symlink("../frames/b.png", self.path("out/a.png"))
        for option in ("-o", "--overlay"):
            self.bad("out/a.png", "is a link", *many, "-o", "other/", option, "out/")
        self.assertEqual({name: self.read(name) for name in before}, before)

    def test_settings_of_a_file(self):
        """Names that come from a file are names all the same."""
        self.write("run.json", json.dumps({"unary": "u.npy", "output": "u.npy"}).encode())
        self.bad("run.json", "--output u.npy: is the same file as --unary u.npy", "solve", "image.png", "--config", "run.json")


class FolderTest(Case):
    """Folders of batch and tune are dcrf's own; what the user put there, or links to, stays."""

    BATCH = ("--methods", "mf1", "--pictures", "0", "--curves", "1", "--quiet")
    TUNE = ("--method", "mf1", "--budget", "1", "--split", "val", "--held-out", "none", "--quiet")

    def setUp(self):
        super().setUp()
        datasets.make(self.path("data"), count=2)

    def run_both(self):
        return (("batch", "data", "-o", "out", *self.BATCH), ("tune", "data", "-o", "out", *self.TUNE))

    def everything(self):
        found = {}
        for folder, _, files in os.walk(self.path("data")):
            found.update({os.path.join(folder, f): self.read(os.path.join(folder, f)) for f in files})
        return found

    def test_inputs_in_the_folder(self):
        os.makedirs(self.path("out/maps"))
        os.symlink("out/maps", self.path("maps"))
        config = self.write("out/mine.json", b"{}")
        for arguments in self.run_both():
            for option, value in (("--config", config), ("--config", "out/../out/mine.json"), ("--cliques", "maps")):
                self.bad("out", "holds %s %s, which could be replaced" % (option, value), *arguments, option, value)
            self.bad("data", "holds DATASET data", *arguments[:3], "data", *arguments[4:])
            self.bad(".", "holds DATASET data", *arguments[:3], ".", *arguments[4:])

    def test_data_that_lies_in_the_folder(self):
        """By links of the data set: results that became somebody's truth."""
        os.makedirs(self.path("out/results/mf1"))
        for name in ("gt/p0.png", "unaries/p0.npy", "images/p0.png", "classes.txt", "splits/val.txt", "dataset.json"):
            path, moved = self.path("data/" + name), self.path("out/results/mf1/p0.png")
            os.rename(path, moved)
            os.symlink(moved, path)
            for arguments in self.run_both():
                before = self.everything()
                self.bad("data/" + name, "lies in out, where results could replace it", *arguments,
                         *(["--split", "val"] if arguments[0] == "batch" else []))
                self.assertEqual(self.everything(), before)
            os.unlink(path)
            os.rename(moved, path)

    def test_links_in_the_folder(self):
        """They are replaced, and what they lead to is not; folders behind links are refused."""
        for arguments, names in zip(self.run_both(), (
                ("results/mf1/p0.png", "results/mf1/p0.json", "curves/mf1/p0.json", "summary.json", "report.html"),
                ("search.json", "best.json", "tune.md", "search.svg"))):
            for name in names:
                out = "out-%s-%s" % (arguments[0], name.replace("/", "-"))
                run = [out if a == "out" else a for a in arguments]
                self.good(*run)
                os.unlink(self.path(out + "/" + name))
                if name == "search.json":
                    os.unlink(self.path(out + "/log.csv"))
                mine = self.write("mine", b"of the user\n")
                os.symlink(mine, self.path(out + "/" + name))
                self.good(*run)
                self.assertEqual(self.read("mine"), b"of the user\n", name)
                self.assertFalse(os.path.islink(self.path(out + "/" + name)), name)

    def test_the_log_and_the_lock(self):
        self.good(*self.run_both()[1])
        for name, status in (("log.csv", 1), (".lock", 1)):
            os.rename(self.path("out/" + name), self.path("mine"))
            os.symlink("../mine", self.path("out/" + name))
            before = self.read("mine")
            done = self.run_dcrf(*[a if a != "1" else "2" for a in self.run_both()[1]])
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(self.read("mine"), before)
            os.unlink(self.path("out/" + name))
            os.rename(self.path("mine"), self.path("out/" + name))

    def test_folders_behind_links(self):
        self.good(*self.run_both()[0])
        os.mkdir(self.path("mine"))
        self.write("mine/p0.txt", b"of the user\n")
        self.write("mine/.dcrf-temporary-abcdef", b"of the user\n")
        for part in ("results/mf1", "results", "curves/mf1", "curves", "failures"):
            path = self.path("out/" + part)
            if os.path.exists(path):
                os.rename(path, self.path("away"))
            os.symlink(self.path("mine"), path)
            self.bad("out/" + part, "is a link where the folder of results should be", *self.run_both()[0])
            self.assertEqual(sorted(os.listdir(self.path("mine"))), [".dcrf-temporary-abcdef", "p0.txt"], part)
            os.unlink(path)
            if os.path.exists(self.path("away")):
                os.rename(self.path("away"), path)


if __name__ == "__main__":
    unittest.main()
