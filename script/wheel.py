#!/usr/bin/env python3
"""wheel.py WHEEL FOLDER [--python cp38 --module FILE]: a wheel for other distributions, of one that was built here.

Its tag says the oldest glibc that its modules can be loaded with, which is read from the versions of the symbols that they need
(as auditwheel does; PEP 600). --module puts another extension module in the place of the wheel's own, for the Python that
--python names. The same files give the same bytes: sorted, with the time of SOURCE_DATE_EPOCH. Prints the wheel's path."""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

# What every Linux system has: a module that needs another library cannot be handed on as it is.
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
             "ld-linux-aarch64.so.1"}


def glibc_of(module):
    """The newest version of glibc that a module needs, such as (2, 27)."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(module)
        file.flush()
        text = subprocess.run(["objdump", "-p", "-T", file.name], capture_output=True, text=True, check=True).stdout
    strange = set(re.findall(r"^ *NEEDED +(\S+)", text, re.M)) - LIBRARIES
    if strange:
        sys.exit(f"wheel.py: the module needs {', '.join(sorted(strange))}, which other systems may lack")
    return max(tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d+\.\d+)", text))[:2]


def renamed(files, old, new):
    """The files of a wheel with another module."""
    module = pathlib.Path(new)
    kept = {name: content for name, content in files.items() if not re.search(old, name)}
    kept[f"dcrf/{module.name}"] = module.read_bytes()
    return kept


def record_of(files, info):
    lines = []
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(files[name])}\n")
    return "".join(lines + [f"{info}/RECORD,,\n"]).encode()


def write(path, files):
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, files[name])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("wheel")
    parser.add_argument("folder")
    parser.add_argument("--python")
    parser.add_argument("--module")
    arguments = parser.parse_args()
    project, version, python, abi, platform = pathlib.Path(arguments.wheel).name[:-4].split("-")
    with zipfile.ZipFile(arguments.wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    if arguments.module:
        files = renamed(files, r"\.so$", arguments.module)
        python = abi = arguments.python
    elif abi == "abi3":
        python = "cp311"  # the oldest that it is compiled for; later versions of meson-python name the one that built it
    info = f"{project}-{version}.dist-info"
    modules = [content for name, content in files.items() if name.endswith(".so")]
    if modules and platform.startswith("linux_"):
        platform = "manylinux_%d_%d_%s" % (*max(map(glibc_of, modules)), platform[len("linux_"):])
    tag = f"{python}-{abi}-{platform}"
    files[f"{info}/WHEEL"] = re.sub(rb"^Tag: .*$", f"Tag: {tag}".encode(), files[f"{info}/WHEEL"], flags=re.M)
    del files[f"{info}/RECORD"]
    files[f"{info}/RECORD"] = record_of(files, info)
    path = pathlib.Path(arguments.folder) / f"{project}-{version}-{tag}.whl"
    write(path, files)
    print(path)


main()
