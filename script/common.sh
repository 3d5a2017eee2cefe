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

# attempt_all WHAT SCRIPT: one result for each line of standard input, which the script has as $name; two at a time.
attempt_all() {
    results=$(mktemp -d)
    if ! grep . >"$results/names"; then
        not_ok "nothing is there to run $1"
    fi
    xargs -P 2 -I '{}' sh -c 'name=$3; (eval "$2") >"$1/$name.log" 2>&1 </dev/null || : >"$1/$name.failed"' \
        - "$results" "$2" '{}' <"$results/names"
    while read -r name; do
        if [ -f "$results/$name.failed" ]; then
            cat "$results/$name.log"
            not_ok "$name $1"
        else
            ok "$name $1"
        fi
    done <"$results/names"
    rm -r "$results"
}

# side_by_side FUNCTION...: two at a time, each in a shell of its own; what they report is shown in their order. One that stops
# half way has failed.
side_by_side() {
    reports=$(mktemp -d)
    number=0
    for function; do
        number=$((number + 1))
        ( # no `||` behind it, or the first error would not end it
            failures=0
            "$function"
            finish
            : >"$reports/$number.passed"
        ) >"$reports/$number" 2>&1 </dev/null &
        [ $((number % 2)) -eq 1 ] || wait
    done
    wait
    number=0
    for function; do
        number=$((number + 1))
        cat "$reports/$number"
        if [ ! -f "$reports/$number.passed" ]; then
            failures=$((failures + 1))
            grep -aq '^not ok - ' "$reports/$number" || not_ok "$function stopped"
        fi
    done
    rm -r "$reports"
}

# shown COMMAND...: a command that takes a while. On a terminal its last line stands where the one before stood; a log
# gets a line for each quarter of ninja's count, and what matters besides. Where it fails, all that it said.
shown() {
    {
        status=0
        "$@" 2>&1 </dev/null || status=$?
        echo "$end_of_shown$status"
    } | show_lines
}
end_of_shown='end of the command, with status '
show_lines() {
    said='' quarter=0 clear=''
    [ ! -t 1 ] || clear=$(printf '\r\033[K')
    while IFS= read -r line; do
        case $line in
        "$end_of_shown"*)
            printf '%s' "$clear"
            [ "${line#"$end_of_shown"}" -eq 0 ] || printf '%s' "$said" >&2
            return "${line#"$end_of_shown"}"
            ;;
        *warning:* | 'Need to get '*) printf '%s%s\n' "$clear" "$line" ;;
        '['[0-9]*/[0-9]*'] '*) count_line ;;
        *) [ -z "$clear" ] || printf '%s%.79s' "$clear" "$line" ;;
        esac
        said="$said$line
"
    done
}
count_line() {
    ended=${line#?} all=${line#*/}
    before=$quarter
    quarter=$((4 * ${ended%%/*} / ${all%%]*}))
    if [ -n "$clear" ]; then
        printf '%s%.79s' "$clear" "$line"
    elif [ "$quarter" -gt "$before" ]; then
        echo "$line"
    fi
}

# clang_format_14: its command, where it is installed.
clang_format_14() {
    for candidate in clang-format-14 clang-format; do
        if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# The last line of a check.
finish() {
    [ "$failures" -eq 0 ]
}

# A directory that goes away with the script.
make_scratch() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM # dash leaves by a signal without it
}

# configure DIRECTORY OPTION...: a build directory with tests and benchmarks, made again if it is not usable.
configure() {
    directory=$1
    shift
    set -- -Dtests=auto -Dbench=auto "$@"
    if [ -f "$directory/build.ninja" ]; then
        meson configure "$directory" "$@" >/dev/null 2>&1 && return 0
    fi
    rm -rf "$directory"
    set_up "$directory" "$@"
}

# set_up DIRECTORY OPTION...: a new build directory. Where Debian's own libraries are, on a bare system too: Meson asks dpkg-dev
# for that, and without it takes a folder in which neither the linker nor CMake look.
set_up() {
    multiarch=$(cc -print-multiarch 2>/dev/null || true)
    meson setup ${multiarch:+--libdir "lib/$multiarch"} "$@"
}

# configure_sanitized DIRECTORY SANITIZERS OPTION...: with asserts, and an end at the first finding.
configure_sanitized() {
    sanitized_build=$1
    sanitizers=$2
    shift 2
    configure "$sanitized_build" -Dbuildtype=debugoptimized -Db_sanitize="$sanitizers" -Db_lundef=false \
        -Dc_args=-fno-sanitize-recover=all -Dbench=disabled -Dcuda=disabled "$@"
}

# build_tests DIRECTORY OPTION...: what the tests need that `meson test OPTION...` runs.
build_tests() {
    ninja -C "$1" build.ninja && # after other options, so that the tests are those of the options
        needed=$(script/test-targets "$@") && ninja -C "$1" $needed
}

# run_unit_tests DIRECTORY NAME OPTION...: the tests of a build, one result each. What turns in a circle is ended after ten
# minutes of CPU time of one process, which neighbours do not change.
run_unit_tests() {
    unit_build=$1
    unit_name=$2
    shift 2
    (ulimit -t 600 && meson test -C "$unit_build" --no-rebuild --print-errorlogs "$@" </dev/null) || true
    script/report-meson "$unit_build" "$unit_name" || failures=$((failures + 1))
}

# python_of MINOR: the Python 3.MINOR that is installed and runs, if any.
python_of() {
    for candidate in "python3.$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$1".*/bin/python3; do
        if "$candidate" -c '' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}
