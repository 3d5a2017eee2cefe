"""Start programs with mpirun, several processes on this machine whatever the number of its cores."""

import os
import subprocess


def environment(**more):
    # Containers run tests as root, which Open MPI wants to be told twice.
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            **{name: str(value) for name, value in more.items()}}


def arguments(count, *command, options=()):
    return ["mpirun", "--oversubscribe", "-n", str(count), *options, *map(str, command)]


def mpirun(count, *command, options=(), **more):
    """Run to the end; the result has returncode, stdout and stderr."""
    return subprocess.run(arguments(count, *command, options=options), env=environment(**more),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
