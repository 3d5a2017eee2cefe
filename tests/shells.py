#!/usr/bin/env python3
"""shells.py [SHELL...]: the completions that are installed, in real shells on a terminal.

Each line is typed with a tab in it and entered. A program called dcrf, first on the path, writes down what it was given: what the
shell made of the line. Standard library only."""

import os
import pathlib
import pty
import select
import shutil
import sys
import tempfile
import time

# What is typed, and what the command must get.
LINES = [
    ("dcrf sol\t--help", "solve --help"),
    ("dcrf solve --label-f\tgrey", "solve --label-format grey"),
    ("dcrf solve --normalize sym\t", "solve --normalize symmetric"),
    ("dcrf batch --preset deepl\t", "batch --preset deeplab"),
    ("dcrf solve pho\t--explain", "solve photo.png --explain"),
    ("dcrf completion fi\t", "completion fish"),
]
COMMANDS = {
    # What Debian gives a new user.
    "bash": ["bash", "--rcfile", "/etc/skel/.bashrc", "-i"],
    "zsh": ["zsh", "-i"],
    "fish": ["fish", "-i"],
}
PATIENCE_S = 60


class Terminal:
    def __init__(self, command, folder, environment):
        self.seen = b""
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def read(self, seconds):
        """Whatever the shell writes in so many seconds; its questions about the terminal are answered."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.file], [], [], 0.05)[0]:
                try:
                    new = os.read(self.file, 4096)
                except OSError:
                    return
                self.seen += new
                if b"\x1b[c" in new or b"\x1b[0c" in new:
                    os.write(self.file, b"\x1b[?62;22c")

    def close(self):
        os.close(self.file)
        os.waitpid(self.process, 0)


def try_shell(shell):
    """The lines that did not become what they should."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record = folder / "record"
        (folder / "bin").mkdir()
        stub = folder / "bin" / "dcrf"
        stub.write_text(f'#!/bin/sh\necho "$*" >>{record}\n', encoding="utf-8")
        stub.chmod(0o755)
        (folder / "photo.png").write_bytes(b"")
        (folder / ".zshrc").write_text("autoload -U compinit\ncompinit -u\n", encoding="utf-8")
        environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": name, "TERM": "xterm", "LANG": "C.UTF-8"}
        terminal = Terminal(COMMANDS[shell], name, environment)
        terminal.read(3)
        wrong = []
        for typed, wanted in LINES:
            record.write_text("", encoding="utf-8")
            before, tab, after = typed.partition("\t")
            os.write(terminal.file, (before + tab).encode())
            terminal.read(1)
            os.write(terminal.file, after.encode() + b"\r")
            end = time.monotonic() + PATIENCE_S
            while not record.read_text(encoding="utf-8").endswith("\n") and time.monotonic() < end:
                terminal.read(0.1)
            got = record.read_text(encoding="utf-8").strip().replace("=", " ")  # zsh joins options and values
            if got != wanted:
                wrong.append(f"{typed!r} became {got!r}, not {wanted!r}")
                break
        if wrong:
            wrong.append(repr(terminal.seen[-2000:]))
        terminal.close()
        return wrong


def main():
    failures = 0
    for shell in sys.argv[1:] or COMMANDS:
        if not shutil.which(shell):
            print(f"skip - {shell} is not installed")
            continue
        wrong = try_shell(shell)
        failures += bool(wrong)
        print("\n".join(wrong + [f"{'not ok' if wrong else 'ok'} - {shell} completes commands, options, values and files"]))
    sys.exit(failures > 0)


main()
