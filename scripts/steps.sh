# The steps that scripts/check and scripts/test share: source after lib.sh.

# The driver is no crate of the workspace: its module is named by its first file.
format() { cargo fmt --all --check && rustfmt --check driver/dma_engine_main.rs; }

check_steps() {
    step "format" format
    step "lints" cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
    step "unit tests" cargo test --quiet --locked --workspace
}

loom() {
    # Its own target folder, or the flag would rebuild everything each time.
    local run=(env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$target/loom"
        cargo test --quiet --locked --release)
    "${run[@]}" --test loom -p stepccl-device -p stepccl-flight -p stepccl-engine-host \
        && "${run[@]}" -p stepccl --lib testing::loom
}

large_plans() {
    cargo test --quiet --locked --release -p stepccl-plan --test verify -- --ignored
}

large_messages() { cargo test --quiet --locked -p stepccl --test large -- --ignored; }

style() { scripts/python 2.15 -m pytest -q -p no:cacheprovider tests/style; }

bench_tests() { scripts/python 2.15 -m pytest -q -p no:cacheprovider tests/perf; }

types() {
    # Checked against the stubs of the extension. torch's own types differ from version to version
    # and from what torch does, so they are left out of it.
    scripts/python 2.15 -m mypy --strict --follow-imports=skip --allow-subclassing-any \
        --cache-dir "$root/build/mypy" runtime/python/python/stepccl
}

licences() { "$deny_root/bin/cargo-deny" --locked --log-level error check licenses bans sources; }

python_tests() { scripts/build-python "$1" && scripts/python "$1" -m pytest -q -p no:cacheprovider tests/python; }
