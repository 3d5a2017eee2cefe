# Sourced after common.sh by the scripts that need a Debian of their own: a minimal one in a folder, and commands run in it.
# Needs root, and mmdebstrap where there is no tar of the system already (DCRF_SYSTEMS names a folder with SUITE.tar).

# system_can_be_made: says why not, and fails.
system_can_be_made() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "a Debian in a folder needs root"
    elif ! command -v mmdebstrap >/dev/null; then
        echo "a Debian in a folder needs mmdebstrap (apt-get install mmdebstrap)"
    else
        return 0
    fi
    return 1
}

# make_system SUITE FOLDER: Debian's base and git, nothing else.
make_system() {
    mkdir -p "$2"
    if [ -f "${DCRF_SYSTEMS:-/nowhere}/$1.tar" ]; then
        tar -C "$2" -xf "$DCRF_SYSTEMS/$1.tar"
    else
        mmdebstrap --quiet --variant=minbase --include=git,ca-certificates "$1" "$2"
    fi
    cp /etc/resolv.conf "$2/etc/resolv.conf"
    # A package that is installed starts nothing.
    printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
    chmod +x "$2/usr/sbin/policy-rc.d"
}

# in_system FOLDER COMMAND...: as root inside it, with an environment of its own. What is mounted and what is left running
# ends with the command. Where $system_binds is FOLDER:PLACE, that folder is seen inside, at that place.
system_binds=''
in_system() {
    system=$1
    shift
    unshare --mount --pid --fork --kill-child -- sh -c '
        system=$1
        binds=$2
        shift 2
        if [ "$binds" ]; then
            mkdir -p "$system${binds#*:}" && mount --bind "${binds%%:*}" "$system${binds#*:}" || exit
        fi
        mount -t proc proc "$system/proc" && mount --rbind /dev "$system/dev" && mount --rbind /sys "$system/sys" &&
            exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=xterm \
                DEBIAN_FRONTEND=noninteractive chroot "$system" "$@"' - "$system" "$system_binds" "$@"
}

# install_in FOLDER PACKAGE...: by apt, with nothing that is only recommended.
install_in() {
    system=$1
    shift
    in_system "$system" apt-get update -q
    in_system "$system" apt-get install -q -y --no-install-recommends "$@"
}
