"""What all tests of the command share: a small scene, its energy by the formula, and the class that
runs the command and looks at what it printed, returned and left on the disk.

A test file is run as: test_something.py PATH/TO/dcrf [unittest arguments]
"""

import fcntl
import json
import math
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

import formats

COMMAND = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "dcrf"

# A shell that runs the tests in the background may ignore signals, which is inherited; the command respects that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TERMINAL_COLUMNS = 120  # room for a whole line
HANG_S = 1200  # a process that takes as long hangs; a busy machine is no reason
WIDTH, HEIGHT, LABELS = 6, 5, 3
PIXELS = [(x, y) for y in range(HEIGHT) for x in range(WIDTH)]
# Real pictures; a test that wants them says that it is skipped where they are not.
SHARED_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/data")


def colour(x, y):
    return (40 * x, 30 * y + 5 * x, 200 - 20 * x)


IMAGE = [[colour(x, y) for x in range(WIDTH)] for y in range(HEIGHT)]
# Multiples of 1/8, so that every float type holds them exactly.
UNARY = [((3 * x + 5 * y + 7 * i * i) % 16) / 8 for x, y in PIXELS for i in range(LABELS)]
LABELLING = [[(x * x + y) % LABELS for x in range(WIDTH)] for y in range(HEIGHT)]
REGIONS = [[x // 3 + 2 * (y // 3) for x in range(WIDTH)] for y in range(HEIGHT)]


def kernel_value(a, b, sigma_px, sigma_colour=None):
    distance = sum((p - q) ** 2 for p, q in zip(a, b)) / sigma_px**2
    if sigma_colour:
        distance += sum((p - q) ** 2 for p, q in zip(colour(*a), colour(*b))) / sigma_colour**2
    return math.exp(-distance / 2)


def kernel_matrix(sigma_px, sigma_colour=None, symmetric=True):
    """The kernel by its formula, in Python's doubles."""
    k = [[kernel_value(a, b, sigma_px, sigma_colour) for b in PIXELS] for a in PIXELS]
    if symmetric:
        norm = [math.sqrt(sum(row)) for row in k]
        k = [[v / (norm[i] * norm[j]) for j, v in enumerate(row)] for i, row in enumerate(k)]
    return k


def pairwise_energy(matrix, weight):
    label = [LABELLING[y][x] for x, y in PIXELS]
    count = range(len(PIXELS))
    return weight * sum(matrix[a][b] for a in count for b in count if label[a] != label[b])


def unary_energy():
    return sum(UNARY[(y * WIDTH + x) * LABELS + LABELLING[y][x]] for x, y in PIXELS)


def clique_energy(gamma, eta):
    total = 0
    for region in sorted({r for row in REGIONS for r in row}):
        members = [p for p in PIXELS if REGIONS[p[1]][p[0]] == region]
        if len({LABELLING[y][x] for x, y in members}) == 1:
            continue
        variance = 0
        for c in range(3):
            values = [colour(*p)[c] for p in members]
            mean = sum(values) / len(values)
            variance += sum((v - mean) ** 2 for v in values) / len(values)
        total += gamma * math.exp(-variance / eta)
    return total


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.image = self.write("image.png", formats.png(IMAGE))
        self.unary = self.write("u.npy", formats.npy(UNARY, (HEIGHT, WIDTH, LABELS)))
        self.labels = self.write("labels.png", formats.number_png(LABELLING))

    def path(self, name):
        return os.path.join(self.folder, name)

    def assertSameInFloats(self, one, other):
        """Of one labelling, where one of the two is of kernel values that were rounded to float, 2^-24 each, some of them in
        a row."""
        self.assertLessEqual(abs(one - other), 8 * 2**-24 * max(abs(one), abs(other)))

    def write(self, name, data):
        with open(self.path(name), "wb") as stream:
            stream.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as stream:
            return stream.read()

    def run_dcrf(self, *arguments, **more):
        return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=HANG_S,
                              cwd=self.folder, check=False, **more)

    def peak_of(self, *arguments):
        """The status, the message and the most memory that was resident. Meson has malloc write to all that it gives and takes
        (MALLOC_PERTURB_), so that memory is resident that nobody used."""
        environment = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
        with subprocess.Popen([COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              cwd=self.folder, env=environment) as child:
            message = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode, message, usage.ru_maxrss * 1024

    def good(self, *arguments, **more):
        done = self.run_dcrf(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def on_terminal(self, *arguments, until=None, status=0):
        """What is shown on a terminal to the end, or until that is shown, when the command is interrupted."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, TERMINAL_COLUMNS, 0, 0))
        shown = b""
        with subprocess.Popen([COMMAND, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=theirs) as run:
            os.close(theirs)
            try:
                while part := os.read(ours, 4096):
                    shown += part
                    if until and until.search(shown.decode(errors="replace")):
                        run.send_signal(signal.SIGINT)
                        until = None
            except OSError:  # how Linux says that the other side was closed
                pass
            os.close(ours)
            self.assertEqual(run.wait(timeout=HANG_S), status)
        return shown.decode()

    def bad(self, subject, words, *arguments, status=2, **more):
        """One line that names the subject (maybe behind the option it was given with) and the problem,
        nothing printed, nothing left behind."""
        before = self.snapshot()
        done = self.run_dcrf(*arguments, **more)
        self.assertEqual(done.returncode, status, (arguments, done.stderr))
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "^dcrf: (--[a-z-]+ )?" + re.escape(subject) + ": ")
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.endswith("\n"))
        self.assertEqual(self.snapshot(), before)

    def run_as_somebody(self, *arguments):
        """As a user who is not root, whom no permission stops."""
        command, user = COMMAND, None
        if os.geteuid() == 0:
            command, user = shutil.copy(COMMAND, self.path("dcrf")), 65534
            os.chmod(command, 0o755)
            os.chmod(self.folder, 0o755)
        return subprocess.run([command, *arguments], capture_output=True, text=True, timeout=HANG_S, cwd=self.folder,
                              user=user, check=False)

    def snapshot(self):
        found = {}
        for name in sorted(os.listdir(self.folder)):
            if os.path.isfile(self.path(name)):
                found[name] = self.read(name)
        return found

    def energy(self, *more, image=None, unary=None, labels=None):
        text = self.good("energy", image or self.image, "--unary", unary or self.unary, "--labels",
                         labels or self.labels, "--json", "-", *more)
        return json.loads(text)
