"""Options that a function hands on: its signature lists them, and a misspelt one is refused by name."""

import difflib
import inspect
import sys


def options_of(*functions, without=()):
    """The keyword-only parameters of functions, each once: name -> inspect.Parameter."""
    return {
        parameter.name: parameter
        for function in functions
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        and not parameter.name.startswith("_")
        and parameter.name not in without
    }


def with_options_of(*functions, without=()):
    """A decorator for a function with ``**options`` that it hands on to others: ``help`` and editors list the others'
    options, and unknown names are refused."""

    def decorate(function):
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {parameter.name for parameter in own}
        handed_on = [p for name, p in options_of(*functions, without=without).items() if name not in names]
        function.__signature__ = signature.replace(parameters=own + handed_on)
        function._handed_on = frozenset(parameter.name for parameter in handed_on)
        return function

    return decorate


def check_options(function, options):
    """Refuse what is not an option of a function of ``with_options_of``."""
    for name in options:
        if name not in function._handed_on:
            known = [name for name in function.__signature__.parameters if not name.startswith("_")]
            near = difflib.get_close_matches(name, known, 1)
            advice = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function.__name__} has no option {name!r}{advice}")


def outside_the_package():
    """For ``warnings.warn``: the frame that called the package, through torch or not, which is whom a warning is for."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("dcrf", "torch"):
        frame, depth = frame.f_back, depth + 1
    return depth
