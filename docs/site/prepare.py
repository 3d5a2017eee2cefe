#!/usr/bin/env python3
"""Put together what Sphinx reads: python3 docs/site/prepare.py SOURCE MADE

SOURCE becomes a copy of docs/ with what is generated: the page of the command from the manual, the tables of
docs/results inside notes/results.md, and the pictures that the examples wrote into MADE (examples.py --keep MADE).
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def table(name):
    """A page of results without its title, one level of headings lower, its links as from notes/."""
    text = (ROOT / "docs" / "results" / name).read_text(encoding="utf-8").split("\n", 1)[1]
    text = re.sub(r"^#", "##", text, flags=re.M)
    return re.sub(r"\]\((?!\.\./|https?:|#)", "](../results/", text)


def results_page(source):
    """The comments `<!-- table NAME -->` become the tables; such files are no pages by themselves."""
    page = source / "notes" / "results.md"
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"<!-- table (\S+) -->", text)
    page.write_text(re.sub(r"<!-- table (\S+) -->", lambda match: table(match[1]), text), encoding="utf-8")
    for name in set(names):
        (source / "results" / name).unlink()
    return names


def link_results(source, names):
    """Links to a file whose tables moved lead to its section of the page of results."""
    anchors = dict(re.findall(r"^## (.+)\n\n<!-- table (\S+) -->", (ROOT / "docs/notes/results.md").read_text(), re.M))
    anchors = {name: re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title, name in anchors.items()}
    for page in source.rglob("*.md"):
        up = "../" * (len(page.relative_to(source).parts) - 1)
        text = page.read_text(encoding="utf-8")
        for name in names:
            text = re.sub(rf"\]\((\.\./|{re.escape(up)})?results/{re.escape(name)}\)", f"]({up}notes/results.md#{anchors[name]})", text)
            if page.parent.name == "results":
                text = text.replace(f"]({name})", f"]({up}notes/results.md#{anchors[name]})")
        page.write_text(text, encoding="utf-8")


def definition_lists(text):
    """mandoc quotes what a term means; here it becomes the term's definition."""
    lines, quoted = [], False
    for line in text.split("\n"):
        if line.startswith(">"):
            plain = line[1:].removeprefix(" ")
            if not quoted and lines and lines[-1] == "" and len(lines) > 1 and lines[-2].startswith("**"):
                lines.pop()
                line = ": " + plain
            elif quoted == ":":
                line = "  " + plain if plain else ""
            quoted = ":" if quoted == ":" or line.startswith(": ") else ">"
        elif line.strip() or quoted == ">":
            quoted = False
        lines.append(line)
    return "\n".join(lines)


def leave_out_links(source):
    """Links to files that are no pages, such as sources, become plain words."""
    for page in source.rglob("*.md"):
        up = "../" * len(page.relative_to(source).parts)
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(rf"\[([^]]+)\]\({re.escape(up)}[^)]+\)", r"\1", text), encoding="utf-8")


def keep_underscores(source):
    """Formulas in the text, such as sum_{a < b} K_ab, have underscores that must not become emphasis."""
    kept = re.compile(r"^```.*?^```|^<!--.*?-->|`[^`\n]+`|\]\([^)]*\)|<!--.*?-->", re.M | re.S)
    for page in source.rglob("*.md"):
        text, done, parts = page.read_text(encoding="utf-8"), 0, []
        for match in kept.finditer(text):
            parts += [re.sub(r"(?m)^(?!    ).*_.*$", lambda line: line[0].replace("_", r"\_"), text[done : match.start()]), match[0]]
            done = match.end()
        parts.append(re.sub(r"(?m)^(?!    ).*_.*$", lambda line: line[0].replace("_", r"\_"), text[done:]))
        page.write_text("".join(parts), encoding="utf-8")


def command_page(source):
    """The manual as Markdown."""
    text = subprocess.run(["mandoc", "-T", "markdown", ROOT / "docs/dcrf.1"], check=True, capture_output=True, text=True).stdout
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("# "))
    last = max(i for i, line in enumerate(lines) if line.strip() and not line.startswith("Debian"))
    body = "\n".join(lines[first : last + 1])
    body = re.sub(r"^(#+ )(.+)$", lambda m: "#" + m[1] + m[2].capitalize(), body, flags=re.M)
    body = definition_lists(body)
    (source / "reference" / "command.md").write_text("# The command\n\nThis is the manual page (`man dcrf`).\n\n" + body + "\n", encoding="utf-8")


def main():
    source, made = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    shutil.copy(source / "site" / "conf.py", source)
    shutil.copy(ROOT / "web" / "dcrf.d.ts", source / "reference")
    if made.exists():
        for picture in [*made.rglob("*.png"), *made.rglob("*.svg")]:
            target = source / "made" / picture.relative_to(made)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, target)
    link_results(source, results_page(source))
    leave_out_links(source)
    keep_underscores(source)
    command_page(source)


if __name__ == "__main__":
    main()
