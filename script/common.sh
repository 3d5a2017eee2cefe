# Sourced by the scripts: go to the root of the repository, and the lines that report a result.
# script/test counts the lines that start with "ok - ", "not ok - " and "skip - ".
set -eu
cd "$(dirname "$0")/.."
root=$PWD
warnings='-Wall -Wextra -Wshadow -Wconversion -Wpedantic -Werror'
failures=0

ok() { echo "ok - $*"; }
skip() { echo "skip - $*"; }
not_ok() {
    echo "not ok - $*"
    failures=$((failures + 1))
}

# attempt DESCRIPTION COMMAND...: one result; the output is shown where the command fails.
attempt() {
    description=$1
    shift
    if attempt_output=$("$@" 2>&1 </dev/null); then
        ok "$description"
    else
        echo "$attempt_output"
        not_ok "$description"
    fi
}

# The last line of a check.
finish() {
    [ "$failures" -eq 0 ]
}

# A directory that goes away with the script.
make_scratch() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
}

# configure DIRECTORY OPTION...: a build directory, made anew where it is not a usable one.
configure() {
    directory=$1
    shift
    if [ -f "$directory/build.ninja" ]; then
        meson configure "$directory" "$@" >/dev/null 2>&1 && return 0
    fi
    rm -rf "$directory"
    meson setup "$directory" "$@"
}

# run_unit_tests DIRECTORY NAME OPTION...: the tests of a build, one result each.
run_unit_tests() {
    unit_build=$1
    unit_name=$2
    shift 2
    meson test -C "$unit_build" --no-rebuild --print-errorlogs "$@" </dev/null || true
    script/report-meson "$unit_build" "$unit_name" || failures=$((failures + 1))
}
