"""When, by what and on what a table was measured; for the scripts that write docs/results."""
import datetime
import os
import pathlib
import platform
import subprocess


def instruction_set():
    """The set whose loops the command uses here, by DCRF_CPU or as the best of this machine."""
    command = pathlib.Path(__file__).parent.parent / "build" / "dcrf"
    lines = subprocess.run([command, "devices"], capture_output=True, text=True, check=True).stdout
    return lines.split("cpu", 1)[1].split(",", 1)[0].strip()


def measured(command):
    """"Measured on DATE by `COMMAND`: PROCESSOR (instruction set: NAME), N cores"."""
    processor = platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return f"Measured on {today} by `{command}`: {processor} (instruction set: {instruction_set()}), {len(os.sched_getaffinity(0))} cores"


def processor_s(process):
    """CPU seconds of a child that has not been waited for, all its threads together (Linux)."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
