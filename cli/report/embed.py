"""Turn text files into C strings: embed.py OUTPUT.h NAME=FILE..."""

import sys


def literal(line):
    escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return '    "' + escaped.rstrip("\n") + '\\n"\n'


with open(sys.argv[1], "w", encoding="utf-8") as output:
    for pair in sys.argv[2:]:
        name, path = pair.split("=", 1)
        with open(path, encoding="utf-8") as lines:
            output.write("static const char *const %s[] = {\n" % name)
            output.writelines(literal(line)[:-1] + ",\n" for line in lines)
            output.write("};\n")
