"""What programs that were compiled against an older header rely on: functions and their types, sizes of structs and
where their fields lie, values of enumerations. Read from the headers by clang, compared with tests/abi.txt.

    abi.py --check RECORD INCLUDE     0: whatever was compiled before still works; says what has been added
    abi.py --record RECORD INCLUDE    write the record

New fields come out of `reserved` bytes, which may shrink and move; new functions, structs and values of enumerations
do no harm. Anything else breaks programs, and needs another soversion in meson.build.
"""

import json
import re
import subprocess
import sys


def clang(include, *arguments):
    return subprocess.run(["clang", "-std=c17", "-I" + include, "-fsyntax-only", "-x", "c", *arguments, "-"],
                          input="#include <dcrf/dcrf.h>\n", capture_output=True, text=True, check=True).stdout


def structs(include):
    """Lines such as "struct dcrf_error 260" and "field dcrf_error.message 4 char[256]"."""
    text = clang(include, "-Xclang", "-fdump-record-layouts-complete")
    for block in text.split("*** Dumping AST Record Layout\n")[1:]:
        lines = block.splitlines()
        name = re.match(r" *0 \| struct (dcrf_\w+)$", lines[0])
        size = re.search(r"\[sizeof=(\d+)", block)
        if not name or not size:
            continue
        yield f"struct {name[1]}", size[1]
        for line in lines[1:]:
            field = re.match(r" *(\d+) \|   (\S.*) (\w+)$", line)
            if field:
                yield f"field {name[1]}.{field[3]}", f"{field[1]} {field[2].replace('struct ', '')}"


def declarations(include):
    """Lines such as "function dcrf_version const char *(void)" and "value DCRF_OK 0"."""
    for node in json.loads(clang(include, "-Xclang", "-ast-dump=json"))["inner"]:
        if node["kind"] == "FunctionDecl" and node["name"].startswith("dcrf_") and node.get("storageClass") != "static":
            yield f"function {node['name']}", node["type"]["qualType"]
        if node["kind"] != "EnumDecl":
            continue
        value = -1
        for constant in node.get("inner", []):
            if constant["kind"] != "EnumConstantDecl":
                continue
            given = [inner for inner in constant.get("inner", []) if "value" in inner]
            value = int(given[0]["value"]) if given else value + 1
            if constant["name"].startswith("DCRF_"):
                yield f"value {constant['name']}", str(value)


def is_room(name):
    return name.endswith(".reserved")


def compare(recorded, found):
    """What is broken, as texts; and what is new, as names."""
    broken = []
    for name, what in recorded.items():
        if name not in found and not is_room(name):
            broken.append(f"{name} is gone; it was {what}")
        elif name in found and found[name] != what and not is_room(name):
            broken.append(f"{name} was {what} and is {found[name]}")
    return broken, [name for name in found if name not in recorded]


def read(path):
    with open(path, encoding="utf-8") as stream:
        lines = [line.rstrip("\n").split(" ", 2) for line in stream if not line.startswith("#")]
    return {f"{kind} {name}": what for kind, name, what in lines}


def write(path, found):
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("# What compiled programs rely on; written by script/check-abi --record. See tests/abi.py.\n")
        stream.writelines(f"{name} {what}\n" for name, what in sorted(found.items()))


def main():
    action, record, include = sys.argv[1:]
    found = dict([*structs(include), *declarations(include)])
    if action == "--record":
        write(record, found)
        return 0
    broken, new = compare(read(record), found)
    for text in broken:
        print("breaks compiled programs:", text)
    if new:
        print(f"{len(new)} not recorded yet (script/check-abi --record): {', '.join(new)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
