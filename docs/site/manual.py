#!/usr/bin/env python3
"""The manual page from its template and the command's help, which is made from the tables of options.

python3 docs/site/manual.py DCRF >docs/dcrf.1

A group of options that several commands share is printed once, under its own title; the others under their command.
"""
import pathlib
import re
import subprocess
import sys

TEMPLATE = pathlib.Path(__file__).with_name("dcrf.1.in")


def help_of(program, *command):
    return subprocess.run([program, "help", *command], check=True, capture_output=True, text=True).stdout


def joined(lines):
    return " ".join(line.strip() for line in lines)


def entries(lines):
    """[(left, help)] of a table: the left column starts after two blanks, the help in column 32."""
    found = []
    for line in lines:
        if re.match(r"  \S", line):
            left, text = (line[2:30].rstrip(), line[32:]) if len(line) > 32 and line[30:32] == "  " else (line[2:], "")
            found.append([left.strip(), [text]])
        else:
            found[-1][1].append(line)
    return [(left, joined(text).strip()) for left, text in found]


class Command:
    def __init__(self, program, name):
        usage, *blocks = help_of(program, name).rstrip().split("\n\n")
        self.name, self.usage = name, " ".join(usage.split())
        self.details, self.operands, self.groups = [], [], []
        for block in blocks:
            first, *rest = block.split("\n")
            if re.match(r"  [A-Z]", first):
                self.operands = entries([first, *rest])
            elif first.endswith(":") and rest and rest[0].startswith("  -"):
                self.groups.append((first[:-1], tuple(entries(rest))))
            else:
                self.details.append(joined([first, *rest]))


def escaped(text):
    """Text for mdoc, a sentence per line."""
    lines = re.sub(r"(?<=\w[.)]) (?=[A-Z-])", "\n", text.replace("\\", "\\e")).split("\n")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def term(left):
    """`-o, --output FILE` in mdoc."""
    match = re.fullmatch(r"(?:-(\w), )?--([\w-]+)(?: (.+))?", left)
    letter, name, form = match.groups()
    argument = f" Ar {form}" if form else ""
    short = f"Fl {letter}{argument} , " if letter else ""
    return f".It {short}Fl -{name}{argument}"


def sentence(text):
    default = re.search(r" \[default: (.+)\]$", text)
    plain = text[: default.start()] if default else text
    end = f"; the default is {default[1]}." if default else "."
    return escaped(plain[0].upper() + plain[1:] + end)


def option_list(options):
    lines = [".Bl -tag -width Ds"]
    for left, text in options:
        lines += [term(left), sentence(text)]
    return lines + [".El"]


def synopsis(commands):
    lines = []
    for command in commands:
        words = command.usage.removeprefix("Usage: dcrf ").split()
        lines += [".Nm", f".Cm {words[0]}"]
        rest = " ".join(words[1:])
        for part in re.findall(r"\[options\]|--[\w-]+ \S+|\S+", rest):
            if part == "[options]":
                lines.append(".Op options")
            elif part.startswith("--"):
                lines.append(".Fl -{} Ar {}".format(*part[2:].split()))
            else:
                lines.append(f".Ar {part}")
    return lines


def descriptions(commands):
    lines = ["The commands are:", ".Bl -tag -width Ds"]
    for command in commands:
        lines.append(f".It Cm {command.name}")
        for number, paragraph in enumerate(command.details):
            lines += [".Pp"] * (number > 0) + [escaped(paragraph)]
    return lines + [".It Cm help", "Print the commands, or the options of one.", ".El"]


def options(commands):
    every = [group for command in commands for group in command.groups]
    lines = []
    for command in commands:
        own = [option for group in command.groups if every.count(group) == 1 for option in group[1]]
        if own:
            lines += [f".Ss Options of {command.name}", *option_list(own)]
    for group in dict.fromkeys(group for group in every if every.count(group) > 1):
        users = [command.name for command in commands if group in command.groups]
        lines += [f".Ss {group[0]}", "Of " + ", ".join(users[:-1]) + f" and {users[-1]}.", *option_list(group[1])]
    return lines


def main(program):
    listed = help_of(program).split("Commands:\n")[1].split("\n\n")[0]
    names = [name for name in re.findall(r"^  ([a-z]+)", listed, re.M) if name != "help"]
    order = ["solve", "certify", "verify", "energy", "filter", "superpixels", "batch", "tune"]
    commands = [Command(program, name) for name in sorted(names, key=lambda name: (order + names).index(name))]
    text = TEMPLATE.read_text(encoding="utf-8")
    for mark, lines in (("@synopsis", synopsis(commands)), ("@commands", descriptions(commands)), ("@options", options(commands))):
        text = text.replace(mark, "\n".join(lines))
    print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1])
