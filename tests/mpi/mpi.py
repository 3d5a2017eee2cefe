"""Start programs with mpirun, several processes on this machine whatever the number of its cores."""

import os
import shlex
import subprocess


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def environment(**more):
    # Containers run tests as root, which Open MPI wants to be told twice. Messages do not leave this machine.
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl_tcp_if_include": "lo", **{name: str(value) for name, value in more.items()}}


def by_messages():
    """As between machines without special hardware: rank 0 has to let the counter work."""
    known = subprocess.run(["ompi_info"], capture_output=True, text=True, check=True).stdout
    counter = "pt2pt" if "osc: pt2pt" in known else "rdma"  # Open MPI 4, and 5
    return ("--mca", "osc", counter, "--mca", "btl", "self,tcp")


def at_rank(rank, other, command):
    """A command for mpirun: `other` at that rank, `command` at the rest. (Open MPI 5.0.7 crashes when it is given both.)"""
    choose = 'if [ "$OMPI_COMM_WORLD_RANK" -eq %d ]; then exec %s; else exec %s; fi'
    return ["sh", "-c", choose % (rank, shlex.join(map(str, other)), shlex.join(map(str, command)))]


def arguments(count, *command, options=()):
    return ["mpirun", "--oversubscribe", "-n", str(count), *options, *map(str, command)]


def start(count, *command, options=(), **more):
    return subprocess.Popen(arguments(count, *command, options=options), env=environment(**more),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end(run):
    """Wait for the end; the result has returncode, stdout and stderr."""
    try:
        out, err = run.communicate(timeout=1200)
    finally:
        # Not SIGKILL: mpirun takes its ranks with it.
        run.terminate()
    return subprocess.CompletedProcess(run.args, run.returncode, out, err)


def mpirun(count, *command, options=(), **more):
    return end(start(count, *command, options=options, **more))


def pids_by_rank(run):
    """The ranks are children of mpirun, and their environment tells which is which."""
    found = {}
    for pid in read("/proc/%d/task/%d/children" % (run.pid, run.pid)).split():
        variables = dict(line.partition(b"=")[::2]
                         for line in read("/proc", pid.decode(), "environ").split(b"\0"))
        if b"OMPI_COMM_WORLD_RANK" in variables:
            found[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(pid)
    return found
