"""The type stubs say what is there: every public function and method, with its parameters."""

import ast
import importlib
import inspect
import pathlib
import sys

NAMES = ("dcrf", "dcrf.metrics", "dcrf.pydensecrf.densecrf", "dcrf.pydensecrf.utils")


def parameters(node):
    a = node.args
    names = [p.arg for p in a.posonlyargs + a.args]
    names += ["*" + a.vararg.arg] if a.vararg else []
    names += [p.arg for p in a.kwonlyargs]
    return names + (["**" + a.kwarg.arg] if a.kwarg else [])


def actual(function):
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in inspect.signature(function).parameters.values()]


def main():
    problems, checked = [], 0
    for name in NAMES:
        module = importlib.import_module(name)
        source = pathlib.Path(module.__file__)
        stub = source.with_suffix(".pyi")
        tree = ast.parse(stub.read_text())
        said = set()
        for node in tree.body:
            if isinstance(node, ast.AnnAssign):
                said.add(node.target.id)
            elif isinstance(node, ast.FunctionDef):
                said.add(node.name)
                checked += 1
                if parameters(node) != actual(getattr(module, node.name)):
                    problems.append(f"{name}.{node.name}")
            elif isinstance(node, ast.ClassDef):
                said.add(node.name)
                cls = getattr(module, node.name)
                if not any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in node.body):
                    continue
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and not part.decorator_list:
                        checked += 1
                        if parameters(part) != actual(getattr(cls, part.name)):
                            problems.append(f"{name}.{node.name}.{part.name}")
                methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                public = {m for m, value in vars(cls).items() if callable(value) and m[0] != "_"}
                problems += [f"{name}.{node.name}.{m} has no stub" for m in public - methods]
        missing = set(module.__all__) - said - {"metrics"}
        problems += [f"{name}.{m} has no stub" for m in missing]
    for problem in problems:
        print("differs:", problem)
    print(f"{checked} signatures")
    return 1 if problems or checked < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
