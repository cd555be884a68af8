# Shared by the scripts of the kernel driver: source after lib.sh. Sets where the Debian root is that
# builds and runs it, and runs commands in there.

driver_packages=$root/scripts/requirements/driver.txt

# A root of Debian 13: its compilers made its kernel, and the module must come from the same ones.
driver_root=$cache/driver-root-$(hash_of "$driver_packages" "$root/scripts/setup-driver")

# in_root COMMAND...: run it in the Debian root, with /proc, /dev and /sys of this machine, the
# repository at /repository (read-only) and $driver_build at /build. Nothing stays mounted.
in_root() {
    local as_user=()
    [ "$(id -u)" = 0 ] || as_user=(--map-root-user)
    mkdir -p "$driver_root"/{proc,dev,sys,repository,build,tmp} "$driver_build"
    unshare --mount --propagation private "${as_user[@]}" bash -c '
        set -e
        at=$1 repository=$2 build=$3
        shift 3
        for folder in proc dev sys; do mount --rbind "/$folder" "$at/$folder"; done
        mount --bind "$repository" "$at/repository"
        mount -o remount,bind,ro "$at/repository"
        mount --bind "$build" "$at/build"
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb chroot "$at" "$@"
    ' in_root "$driver_root" "$root" "$driver_build" "$@"
}

# Whether this machine can make and enter such a root; says why not.
driver_root_possible() {
    [ "$(uname -m)" = x86_64 ] || { say "the driver's tests run on x86_64 only"; return 1; }
    command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
        { say "no apt-get and dpkg to fetch Debian packages with"; return 1; }
    [ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        { say "no keys of Debian's archive; install debian-archive-keyring"; return 1; }
    local as_user=()
    [ "$(id -u)" = 0 ] || as_user=(--map-root-user)
    # What in_root does; some containers allow the first and not the rest.
    unshare --mount --propagation private "${as_user[@]}" sh -c 'mount --rbind /proc /proc && chroot / true' 2>/dev/null ||
        { say "no right to mount and to change the root"; return 1; }
    local free
    mkdir -p "$cache"
    free=$(df --output=avail -B1G "$cache" | tail -n 1)
    ((free >= 6)) || { say "$cache has $free GiB free, 6 are needed"; return 1; }
}

driver_build=${driver_build:-$target/driver}

# build_programs PROFILE ARGUMENT...: programs of the guest, static because it has no libraries.
# $programs is where they are.
build_programs() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    RUSTFLAGS="-C target-feature=+crt-static" CARGO_TARGET_DIR=$target/guest \
        cargo build --quiet --locked --target "$host" --profile "$1" "${@:2}"
    programs=$target/guest/$host/${1/dev/debug}
}

# new_guest NAME PROGRAM: an empty file system with busybox, the module and one program, in $guest.
new_guest() {
    guest=$driver_build/$1
    rm -rf "$guest"
    mkdir -p "$guest"/{bin,proc,sys,dev,tmp}
    cp "$driver_root/usr/bin/busybox" "$guest/bin/busybox"
    cp "$driver_build/module/dma_engine.ko" "$programs/$2" "$guest/"
}

# guest_modules NAME...: modules of the guest's kernel, by their place below kernel/.
guest_modules() {
    local module
    for module in "$@"; do
        xz -dc "$driver_root/usr/lib/modules/$(cat "$driver_root/ready")/kernel/$module.ko.xz" >"$guest/${module##*/}.ko"
    done
}

# with_model LOG COMMAND...: run a command while the I/OAT model listens on a socket below the build
# folder, which the emulator sees as /build. Give QEMU "${model_options[@]}".
model_options=(-device '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"/build/ioat.socket"}}')
with_model() {
    local socket=$driver_build/ioat.socket log=$1 model status=0
    shift
    rm -f "$socket"
    "$programs/ioat-model" "$socket" >"$log" 2>&1 &
    model=$!
    trap "kill $model 2>/dev/null || true" EXIT
    for _ in $(seq 100); do
        [ -S "$socket" ] && break
        sleep 0.1
    done
    "$@" || status=$?
    kill "$model" 2>/dev/null || true
    wait "$model" 2>/dev/null || true
    return "$status"
}

# pack_guest NAME INITRAMFS: the file system of a guest as /build/INITRAMFS.
pack_guest() { in_root sh -c "cd '/build/$1' && find . | cpio --quiet -o -H newc >'/build/$2'"; }
