"""The type stubs, by mypy's own tests: that they say what is there (stubtest), and that a program which
uses the package passes `mypy --strict`. Without mypy the test exits with 77, which counts as skipped."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(*arguments):
    print("$ python -m", *arguments, flush=True)
    return subprocess.run([sys.executable, "-m", *map(str, arguments)]).returncode


def main():
    try:
        import mypy  # noqa: F401
    except ImportError:
        print("skipped: there is no mypy")
        return 77
    package = pathlib.Path(__import__("dcrf").__file__).parent.parent
    if package.name != "site-packages":  # mypy finds installed packages by itself
        os.environ["MYPYPATH"] = str(package)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MYPY_CACHE_DIR"] = cache
        # A stub says by its names what a module has, without __all__, which some versions of mypy miss. Without torch,
        # dcrf.torch cannot be imported, and its stub has types that are not known.
        has_torch = importlib.util.find_spec("torch")
        allowed, settings = pathlib.Path(cache) / "allowed", pathlib.Path(cache) / "mypy.ini"
        # What only dcrf.torch uses has no stubs of its own, and mypy cannot follow torch's metaclasses there.
        allowed.write_text(
            r"dcrf(\..*)?\.__all__" "\n" r"dcrf\._torch_\w+(\..*)?" "\n" + ("" if has_torch else "dcrf.torch\n")
        )
        settings.write_text("[mypy]\n" + ("" if has_torch else "[mypy-torch.*]\nignore_missing_imports = True\n"))
        failed = run("mypy.stubtest", "dcrf", "--allowlist", allowed, "--ignore-unused-allowlist", "--mypy-config-file", settings)
        failed |= run("mypy", "--strict", HERE / "typed_program.py")
    return failed


if __name__ == "__main__":
    sys.exit(main())
