"""The examples in the docstrings."""

import doctest
import importlib
import importlib.util
import pkgutil
import sys

import dcrf


def main():
    attempted = failed = 0
    names = [module.name for module in pkgutil.walk_packages(dcrf.__path__, "dcrf.")]
    if importlib.util.find_spec("torch") is None:
        names.remove("dcrf.torch")
    for name in ["dcrf", *names]:
        result = doctest.testmod(importlib.import_module(name))
        attempted += result.attempted
        failed += result.failed
    print(f"{attempted} examples, {failed} failed")
    return 1 if failed or attempted < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
