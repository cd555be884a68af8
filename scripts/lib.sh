# Shared by the scripts beside it: `. "$(dirname "$0")/lib.sh"`. Sets root and cache.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stepccl
target=${CARGO_TARGET_DIR:-$root/target}
torch_versions=(2.15 2.11)

say() { printf '%s\n' "$*"; }

# die MESSAGE: what went wrong and what to do, then stop.
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# elapsed START: seconds since START (a value of SECONDS), for people.
elapsed() {
    local s=$((SECONDS - $1))
    if ((s >= 60)); then printf '%dm %02ds' $((s / 60)) $((s % 60)); else printf '%ds' "$s"; fi
}

# hash_of FILE...: one short name for the content of all of them.
hash_of() { cat "$@" | sha256sum | cut -c1-12; }

# full_version 2.15: the torch release that stands for that minor version.
full_version() {
    case $1 in
    2.15) echo 2.15.0 ;;
    2.11) echo 2.11.0 ;;
    *) die "torch $1 is not one of: ${torch_versions[*]}" ;;
    esac
}

# requirements VERSION: the requirement lists of that environment.
requirements() {
    echo "$root/scripts/requirements/common.txt"
    if [ "$1" = 2.15 ]; then echo "$root/scripts/requirements/tools.txt"; fi
}

# python_env VERSION: folder of that environment, there or not. Everything that decides what is
# in it is in its name, so a change of a list makes a new one.
python_env() {
    local full lists
    full=$(full_version "$1")
    mapfile -t lists < <(requirements "$1")
    echo "$cache/python-torch-$full-$(hash_of "${lists[@]}" "$root/scripts/torch-stubs.py")"
}

# need_python_env VERSION: like python_env, but it must be there.
need_python_env() {
    local env
    env=$(python_env "$1")
    [ -x "$env/bin/python" ] || die "no environment for torch $1; run: scripts/setup python-$1"
    echo "$env"
}

deny_version=0.20.2
deny_root=$cache/cargo-deny-$deny_version

# The nightly that "scripts/setup nightly" installs where there is none; tests that need one are
# skipped without it.
nightly_wanted=nightly-2026-05-20

# nightly_with COMPONENT...: a nightly toolchain that has them: the pinned one, or the newest.
nightly_with() {
    command -v rustup >/dev/null || return 1
    local toolchain component have
    for toolchain in "$nightly_wanted" nightly; do
        have=$(rustup component list --toolchain "$toolchain" --installed 2>/dev/null) || continue
        for component in "$@"; do
            grep -q "^$component" <<<"$have" || continue 2
        done
        echo "$toolchain"
        return
    done
    return 1
}

# skip REASON: end a script that this machine cannot run, with a status that is neither success nor
# failure; whoever calls it by `step` counts it as skipped.
skipped_status=75
skip() {
    say "SKIPPED: $*"
    exit "$skipped_status"
}

# step NAME COMMAND...: run one step with a header and its time; count how it ended.
passed=0 failed_steps=() skipped_steps=()
step() {
    local name=$1 start=$SECONDS status=0
    shift
    say "== $name"
    "$@" || status=$?
    case $status in
    0)
        passed=$((passed + 1))
        say "-- $name: ok, $(elapsed "$start")"
        ;;
    "$skipped_status")
        skipped_steps+=("$name")
        say "-- $name: SKIPPED for the reason above, $(elapsed "$start")"
        ;;
    *)
        failed_steps+=("$name")
        say "-- $name: FAILED, $(elapsed "$start")"
        ;;
    esac
}

# summary: the closing lines; fails if a step failed.
summary() {
    say
    local name
    for name in "${skipped_steps[@]}"; do say "skipped: $name"; done
    for name in "${failed_steps[@]}"; do say "failed: $name"; done
    say "total time $(elapsed 0)"
    say "$passed passed, ${#failed_steps[@]} failed, ${#skipped_steps[@]} skipped"
    ((${#failed_steps[@]} == 0))
}
