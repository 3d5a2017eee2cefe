"""Doxygen's view of a public header: plain comments become documentation comments.

The headers have ordinary C comments. One that starts a line describes what follows it; one behind code describes what
stands before it; the first one describes the file. Lines of dashes only divide a header.
"""
import re
import sys

# Doxygen would list a struct and its typedef of the same name as two things.
NAMED = re.compile(r"typedef (struct|enum) (\w+) \{(.*?)^\} \2;", re.S | re.M)
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)


def text_of(body):
    lines = [re.sub(r"^ ?\* ?", "", line.strip()) if i else line.strip() for i, line in enumerate(body.split("\n"))]
    return [line for line in lines if not line.startswith("SPDX-License-Identifier")]


def escaped(line):
    return re.sub(r"([@\\<>#%])", r"\\\1", line) if "`" not in line else re.sub(r"([@\\])", r"\\\1", line)


def converted(match, source, name):
    body = match.group(1)
    if body.strip().startswith("----"):
        return "\n" * body.count("\n")
    first = not source[:match.start()].strip()
    behind = bool(source[:match.start()].rsplit("\n", 1)[-1].strip())
    lines = paragraphs(text_of(body))
    if first:
        lines = [f"@file {name}", "@brief " + lines[0]] + lines[1:]
    mark = "/**<" if behind else "/**"
    return mark + " " + "\n * ".join(lines) + " */"


def paragraphs(lines):
    """Indented lines become code; everything else is plain text."""
    found, code = [], False
    for line in lines:
        indented = line.startswith("  ")
        if indented and not code:
            found += ["", "@verbatim"]
        elif code and not indented:
            found += ["@endverbatim", ""]
        code = indented
        found.append(line if code else escaped(line))
    return found + (["@endverbatim"] if code else [])


def main(path):
    with open(path, encoding="utf-8") as file:
        source = NAMED.sub(r"\1 \2 {\3};", file.read())
    name = "dcrf/" + path.rsplit("/", 1)[-1]
    print(COMMENT.sub(lambda match: converted(match, source, name), source), end="")


if __name__ == "__main__":
    main(sys.argv[1])
