#!/usr/bin/env python3
"""Run the examples of the documentation: python3 docs/site/examples.py [--keep FOLDER] PAGE...

Every page has a folder of its own with the files of draw.py, in which its fenced blocks are run in their order:

    sh        a shell with build/ in its path, which stops at the first command that fails
    python    one program per page, so that later blocks see what earlier ones made
    c         compiled with warnings as errors, linked with the library, and run
    js        Node, with the package of script/build-web; skipped where either is not there
    text      a formula, a listing or an output: not run

A comment before a block changes that: `<!-- not run: why -->` leaves a command out, `<!-- prints -->` before a text block
says that the last example printed these lines (`<!-- prints, digits vary -->`: with digits of its own), `<!-- setup ... -->` is Python that runs before the page's blocks, and
`<!-- made ... -->` is shell that makes further pictures at the end.
--keep leaves the folders, with the pictures that the commands wrote, for the site.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("DCRF_PYTHON", "/usr/bin/python3")
LANGUAGES = {"sh", "python", "c", "js", "text", "json"}
BLOCK = re.compile(
    r"(?P<notes>(?:<!--(?:(?!-->).)*-->\s*\n)*)^```(?P<language>[^\n]*)\n(?P<code>.*?)^```", re.M | re.S
)
COMMAND = re.compile(r"^    (dcrf|python3?|mpirun|script/\S+|pip|npm|meson|cc) ", re.M)
WAIT_S = 300  # for hangs alone


class Page:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder
        self.text = path.read_text(encoding="utf-8")
        self.printed, self.count, self.left_out, self.failures = "", 0, [], []
        setup = re.search(r"<!-- setup\n(.*?)-->", self.text, re.S)
        self.program = setup[1] if setup else ""

    def environment(self):
        build = ROOT / "build"
        return {
            **os.environ,
            "PATH": f"{build}:{self.folder.parent / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(build / "python"),
            "LD_LIBRARY_PATH": str(build / "src"),
            "DCRF_SOURCE": str(ROOT),
        }

    def run(self, command, what):
        try:
            done = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True,
                                  timeout=WAIT_S, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            self.failures.append(f"{what}: no end after {WAIT_S} s")
            return
        self.printed = done.stdout + done.stderr
        self.count += 1
        if done.returncode:
            self.failures.append(f"{what}: status {done.returncode}\n{self.printed}")

    def sh(self, code, what):
        self.run(["sh", "-eu", "-c", code], what)

    def python(self, code, what):
        """All blocks so far, with the output of the last one."""
        mark = "end of the earlier blocks"
        program = self.program + f"\nprint({mark!r})\n" + code
        self.run([PYTHON, "-c", program], what)
        self.printed = self.printed.split(mark + "\n")[-1]
        self.program += code

    def c(self, code, what):
        source, binary = self.folder / "example.c", self.folder / "example"
        source.write_text(code)
        self.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", str(source),
                  f"-L{ROOT / 'build' / 'src'}", "-ldcrf", "-o", str(binary)], what)
        if not self.failures:
            self.run([str(binary)], what)

    def js(self, code, what):
        package = ROOT / "build-web" / "package"
        if not shutil.which("node") or not (package / "dcrf.js").exists():
            self.left_out.append(f"{what}: no Node, or no build-web (script/build-web)")
            return
        source = self.folder / "example.mjs"
        source.write_text(code.replace("'dcrf'", repr(str(package / "dcrf.js"))))
        self.run(["node", str(source)], what)

    def expect(self, lines, what, digits_vary):
        def plain(line):
            return re.sub(r"\d", "0" if digits_vary else r"\g<0>", " ".join(line.split()))

        printed = {plain(line) for line in self.printed.splitlines()}
        missing = [line for line in lines if line.strip() and plain(line) not in printed]
        if missing:
            self.failures.append(f"{what}: not printed: {missing[0].strip()}\nbut\n{self.printed}")

    def run_all(self):
        for match in BLOCK.finditer(self.text):
            what = f"{self.path.name}:{self.text[:match.start('code')].count(chr(10))}"
            self.block(match["language"].strip(), match["code"], match["notes"], what)
        for match in re.finditer(r"<!-- made\n(.*?)-->", self.text, re.S):
            self.sh(match[1], f"{self.path.name}: pictures")
        plain = BLOCK.sub("", self.text)
        if COMMAND.search(plain):
            self.failures.append(f"{self.path.name}: a command that is not in a fenced block: {COMMAND.search(plain)[0].strip()}")

    def block(self, language, code, notes, what):
        if language.startswith("{"):
            return
        if language not in LANGUAGES:
            self.failures.append(f"{what}: a block of the language {language!r}")
        elif "<!-- not run:" in notes:
            self.left_out.append(f"{what}: {re.search('not run: (.*?) *-->', notes)[1]}")
        elif "<!-- prints" in notes:
            self.expect(code.splitlines(), what, "digits vary" in notes)
        elif language not in ("text", "json"):
            getattr(self, language)(code, what)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="leave each page's folder here")
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        drawn = pathlib.Path(scratch) / "drawn"
        subprocess.run([PYTHON, ROOT / "docs/site/draw.py", drawn], check=True)
        place = (arguments.keep or pathlib.Path(scratch)).resolve()
        (place / "bin").mkdir(parents=True, exist_ok=True)
        (place / "bin" / "python3").unlink(missing_ok=True)
        (place / "bin" / "python3").symlink_to(PYTHON)
        for path in arguments.pages:
            folder = place / path.stem
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(drawn, folder)
            page = Page(path, folder)
            page.run_all()
            failed |= bool(page.failures)
            for failure in page.failures:
                print(failure)
            if page.failures or page.count:
                print(f"{'not ok' if page.failures else 'ok'} - {page.count} examples of {path}", flush=True)
            for line in page.left_out:
                print(f"    not run: {line}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
