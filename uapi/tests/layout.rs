//! The C header and its mirror say the same: every size, offset and number, as a 64-bit and as a
//! 32-bit caller sees them. Names come from the header itself, so that none can be forgotten.

mod header;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{offset_of, size_of};
use std::path::PathBuf;
use std::process::Command;

use dma_engine_uapi::abi::{
    AttachEventfd, AttachProxy, CompletionEntry, Descriptor, Enter, Export, Import, ProxyReply,
    ProxyRequest, Query, RegisterDmabuf, RegisterMemory, RingOffsets, RingSetup, SubmissionEntry,
    Submit, Unregister, address, command, completion, descriptor, ioctl, ring, status, submission,
    version,
};
use header::Header;

/// What both sides say of a name: `struct`, `struct.field offset`, `struct.field size`, `MACRO`.
type Facts = BTreeMap<String, u64>;

fn field_size<T, F>(_: fn(&T) -> &F) -> u64 {
    size_of::<F>() as u64
}

/// Facts of mirror structs: size of each, offset and size of every field.
macro_rules! structs {
    ($facts:ident: $($c:literal = $rust:ident { $($field:ident),* $(,)? })*) => {
        $(
            $facts.insert(format!("struct {}", $c), size_of::<$rust>() as u64);
            $(
                let name = match stringify!($field) {
                    "reserved" => "__reserved",
                    other => other,
                };
                $facts.insert(format!("{}.{name} offset", $c), offset_of!($rust, $field) as u64);
                let size = field_size::<$rust, _>(|value| &value.$field);
                $facts.insert(format!("{}.{name} size", $c), size);
            )*
        )*
    };
}

/// Facts of mirror constants; the name in C has the given prefix.
macro_rules! numbers {
    ($facts:ident: $($prefix:literal $module:path { $($name:ident),* $(,)? })*) => {
        $({
            use $module as constants;
            $(
                let value = i128::from(constants::$name);
                $facts.insert(format!("{}{}", $prefix, stringify!($name)), value as u64);
            )*
        })*
    };
}

fn mirror() -> Facts {
    let mut facts = Facts::new();
    structs! { facts:
        "dma_descriptor" = Descriptor {
            src_addr, dst_addr, length, src_node, dst_node, opcode, flags, reserved,
        }
        "dma_engine_sqe" = SubmissionEntry {
            desc, user_data, signal_addr, signal_value, flags, reserved,
        }
        "dma_engine_cqe" = CompletionEntry { user_data, result, flags }
        "dma_engine_query" = Query {
            size, flags, abi_version, abi_oldest, driver_version, driver_oldest, features, node,
            reserved, channels, copy_align, max_entries, max_in_flight, max_regions,
            op_timeout_ms, max_region_bytes, pinned_limit_bytes, pinned_bytes,
        }
        "dma_engine_ring_offsets" = RingOffsets {
            sq_head, sq_tail, sq_flags, sq_entries, cq_head, cq_tail, cq_flags, cq_stalls,
            cq_entries, reserved,
        }
        "dma_engine_ring_setup" = RingSetup {
            size, flags, sq_entries, cq_entries, numa_node, poll_idle_us, offsets, map_offset,
            map_bytes,
        }
        "dma_engine_enter" = Enter {
            size, flags, to_submit, min_complete, timeout_ns, submitted, completed,
        }
        "dma_engine_submit" = Submit { size, flags, desc, result, completion_flags }
        "dma_engine_register_memory" = RegisterMemory {
            size, flags, address, length, access, region, properties, reserved,
        }
        "dma_engine_register_dmabuf" = RegisterDmabuf {
            size, flags, fd, access, offset, length, region, properties,
        }
        "dma_engine_export" = Export {
            size, flags, region, access, offset, length, fd, reserved,
        }
        "dma_engine_import" = Import { size, flags, fd, access, length, region, properties }
        "dma_engine_unregister" = Unregister { size, flags, region, reserved }
        "dma_engine_attach_eventfd" = AttachEventfd { size, flags, fd, reserved }
        "dma_engine_attach_proxy" = AttachProxy { size, flags, node, reserved, max_requests }
        "dma_engine_proxy_request" = ProxyRequest { id, desc, deadline_ns, uid, reserved }
        "dma_engine_proxy_reply" = ProxyReply { id, result, flags }
    }
    numbers! { facts:
        "DMA_ENGINE_" version { ABI_VERSION, ABI_OLDEST }
        "DMA_ENGINE_FEATURE_" version::feature {
            CHANNELS, FILL, SIGNAL, DMABUF, PEER, EXPORT, PROXY, POLL,
        }
        "DMA_ENGINE_" address {
            OFFSET_BITS, REGION_BITS, REGION_SLOT_BITS, REGION_GENERATION_BITS, MAX_REGION_BYTES,
        }
        "DMA_ENGINE_OP_" descriptor::opcode { READ, WRITE, NOP, FENCE, FILL }
        "DMA_ENGINE_DESC_" descriptor::flags { CHANNEL, CPU }
        "DMA_ENGINE_SQE_" submission::flags { LINK, DRAIN, SIGNAL_STORE, SIGNAL_ADD }
        "DMA_ENGINE_CQE_" completion::flags { ERROR, CPU, PROXY }
        "DMA_ENGINE_SQ_" ring::sq_flags { NEED_WAKEUP, CQ_FULL, FAILED }
        "DMA_ENGINE_CQ_" ring::cq_flags { WAITING }
        "DMA_ENGINE_" ring { NUMA_ANY }
        "DMA_ENGINE_SETUP_" command::setup_flags { POLL }
        "DMA_ENGINE_ENTER_" command::enter_flags { WAKE, ABSOLUTE }
        "DMA_ENGINE_EVENTFD_" command::eventfd_flags { ON_DEMAND }
        "DMA_ENGINE_ACCESS_" command::access { READ, WRITE }
        "DMA_ENGINE_REGION_" command::properties { CPU, CHANNEL, PEER, REVOCABLE }
        "DMA_ENGINE_CMD_" ioctl::command {
            QUERY, RING_SETUP, ENTER, SUBMIT, REGISTER_MEMORY, REGISTER_DMABUF, EXPORT, IMPORT,
            UNREGISTER, ATTACH_EVENTFD, ATTACH_PROXY,
        }
        "DMA_ENGINE_" ioctl {
            TYPE, QUERY, RING_SETUP, ENTER, SUBMIT, REGISTER_MEMORY, REGISTER_DMABUF, EXPORT,
            IMPORT, UNREGISTER, ATTACH_EVENTFD, ATTACH_PROXY,
        }
        "" status {
            ENOENT, EIO, ENOMEM, EACCES, ENODEV, EINVAL, ERANGE, EOPNOTSUPP, ETIMEDOUT,
            EHOSTUNREACH, ESTALE, EREMOTEIO, ECANCELED,
        }
    }
    let example = address::address(0x00ab_cdef, 0x12_3456_789a);
    facts.insert(EXAMPLE_ADDRESS.into(), example.expect("a valid address"));
    facts
}

const EXAMPLE_ADDRESS: &str = "DMA_ENGINE_ADDRESS(0xabcdef, 0x123456789aULL)";

/// A C file whose assembly has one line `@@name@@low high` a fact.
fn probe(header: &Header) -> String {
    let mut expressions: Vec<(String, String)> = Vec::new();
    for (name, fields) in &header.structs {
        expressions.push((format!("struct {name}"), format!("sizeof(struct {name})")));
        for field in fields {
            let offset = format!("__builtin_offsetof(struct {name}, {field})");
            let size = format!("sizeof(((struct {name} *)0)->{field})");
            expressions.push((format!("{name}.{field} offset"), offset));
            expressions.push((format!("{name}.{field} size"), size));
        }
    }
    expressions.extend(header.numbers.iter().map(|name| (name.clone(), name.clone())));
    expressions.push((EXAMPLE_ADDRESS.into(), EXAMPLE_ADDRESS.into()));
    let errno = mirror().into_keys().filter(|name| name.starts_with('E'));
    expressions.extend(errno.map(|name| (name.clone(), name)));

    let mut source = String::from("#include <asm-generic/errno.h>\n#include \"dma_engine.h\"\n");
    source.push_str("void probe(void)\n{\n");
    for (name, expression) in expressions {
        source.push_str(&format!(
            "__asm__ volatile(\"\\n@@{name}@@%c0 %c1\" : : \
             \"i\" ((int)((__s64)({expression}))), \"i\" ((int)((__s64)({expression}) >> 32)));\n"
        ));
    }
    source.push_str("}\n");
    source
}

/// Facts as the C compiler sees them for callers of `bits` bits, with `arguments`.
fn compiled(header: &Header, bits: u32, arguments: &[&str]) -> Facts {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join(format!("probe{bits}.c"));
    std::fs::write(&file, probe(header)).expect("the folder for temporary files can be written");
    let assembly = gcc("gcc", &[arguments, &["-S", "-o", "-", path(&file)]].concat());
    let parse = |half: &str| half.parse::<i32>().expect("the compiler prints decimal numbers");
    assembly
        .lines()
        .filter_map(|line| line.trim().strip_prefix("@@"))
        .map(|line| {
            let (name, halves) = line.split_once("@@").expect("a name ends with two signs");
            let (low, high) = halves.split_once(' ').expect("two halves a fact");
            let value = u64::from(parse(high) as u32) << 32 | u64::from(parse(low) as u32);
            (name.to_owned(), value)
        })
        .collect()
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("a path of ASCII")
}

/// Standard output of a compiler that must succeed.
fn gcc(compiler: &str, arguments: &[&str]) -> String {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let result = Command::new(compiler).args(["-I", include]).args(arguments).output();
    let output = result.unwrap_or_else(|error| {
        panic!("{compiler}: {error}; install build-essential (gcc, g++, kernel headers)")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {arguments:?}:\n{errors}");
    String::from_utf8(output.stdout).expect("assembly is ASCII")
}

/// No difference, or one line for each.
fn differences(header: &Facts, mirror: &Facts) -> Vec<String> {
    let names: BTreeSet<_> = header.keys().chain(mirror.keys()).collect();
    names
        .into_iter()
        .filter(|name| header.get(*name) != mirror.get(*name))
        .map(|name| format!("{name}: C {:?}, Rust {:?}", header.get(name), mirror.get(name)))
        .collect()
}

#[test]
fn layout_for_64_bit_callers() {
    let c = compiled(&Header::read(), 64, &[]);
    assert!(c.len() > 200, "only {} facts", c.len());
    assert_eq!(differences(&c, &mirror()), [""; 0]);
}

/// 32-bit x86 aligns a plain u64 to 4 bytes, which is the case that goes wrong. Only the compiler
/// is needed for it, not a 32-bit C library.
#[cfg(target_arch = "x86_64")]
#[test]
fn layout_for_32_bit_callers() {
    let multiarch = format!("/usr/include/{}", gcc("gcc", &["-print-multiarch"]).trim());
    let c = compiled(&Header::read(), 32, &["-m32", "-ffreestanding", "-isystem", &multiarch]);
    assert!(c.len() > 200, "only {} facts", c.len());
    assert_eq!(differences(&c, &mirror()), [""; 0]);
}

/// A hole would carry bytes that nobody checks or clears.
#[test]
fn structs_have_no_holes() {
    let header = Header::read();
    let facts = mirror();
    for (name, fields) in &header.structs {
        let sum: u64 = fields.iter().map(|field| facts[&format!("{name}.{field} size")]).sum();
        assert_eq!(sum, facts[&format!("struct {name}")], "{name}");
        assert_eq!(sum % 8, 0, "{name} must be the same for 32-bit callers");
    }
}

#[test]
fn commands_start_with_their_size() {
    let header = Header::read();
    for name in header.numbers.iter().filter_map(|name| name.strip_prefix("DMA_ENGINE_CMD_")) {
        let fields = &header.structs[&format!("dma_engine_{}", name.to_lowercase())];
        assert_eq!(fields[..2], ["size", "flags"], "{name}");
        assert!(header.numbers.contains(&format!("DMA_ENGINE_{name}")), "{name} has no number");
    }
}

#[test]
fn header_compiles_alone_in_every_dialect() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join("alone.c");
    let uses = "#include \"dma_engine.h\"\n#include \"dma_engine.h\"\n\
                struct dma_engine_sqe entry;\n";
    std::fs::write(&file, uses).expect("the folder for temporary files can be written");
    let strict = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
    for standard in ["-std=c90", "-std=c99", "-std=c11", "-std=gnu17"] {
        gcc("gcc", &[&strict[..], &[standard, "-Wpadded", path(&file)]].concat());
    }
    for standard in ["-std=c++98", "-std=c++11", "-std=c++20"] {
        gcc("g++", &[&strict[..], &[standard, "-x", "c++", path(&file)]].concat());
    }
}

#[test]
fn device_path_is_the_same() {
    assert_eq!(Header::read().strings["DMA_ENGINE_DEVICE"], version::DEVICE);
}

#[test]
fn every_name_is_documented() {
    assert_eq!(Header::read().undocumented(), [""; 0]);
}

/// The worked example of the documentation compiles as it stands there.
#[test]
fn example_in_the_documentation_compiles() {
    let page = include_str!("../../Documentation/abi.md");
    let code = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("example.c");
    std::fs::write(&file, code.expect("a block of C"))
        .expect("the folder for temporary files can be written");
    gcc("gcc", &["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", path(&file)]);
}

/// The driver includes the mirror by `#[path]` below a module of its own, with edition 2021.
#[test]
fn mirror_compiles_as_a_module_of_the_driver() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join("driver.rs");
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/src/abi/mod.rs");
    let source = format!(
        "#![no_std]\n#![allow(dead_code)]\npub mod inner {{\n    #[path = {module:?}]\n    \
         pub mod abi;\n}}\n"
    );
    std::fs::write(&file, source).expect("the folder for temporary files can be written");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2021", "--crate-type", "lib", "--emit", "metadata", "-D", "warnings"])
        .args(["--out-dir", path(&directory), path(&file)])
        .output()
        .expect("the compiler that built this test runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
