//! Segments as a peer passes them: the same memory through another descriptor, and what is refused.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::libc::MFD_HUGETLB;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::ftruncate;
use stepccl_memory::{MemoryError, Segment};

fn passed(segment: &Segment) -> OwnedFd {
    segment.fd().try_clone_to_owned().expect("a descriptor is free")
}

fn memfd(bytes: i64, seals: SealFlag) -> OwnedFd {
    let fd = memfd_create("peer", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap();
    ftruncate(&fd, bytes).unwrap();
    fcntl(&fd, FcntlArg::F_ADD_SEALS(seals)).unwrap();
    fd
}

#[test]
fn two_mappings_are_one_memory() {
    let own = Segment::create("own", 10_000).unwrap();
    let peers = Segment::open(passed(&own), 10_000).unwrap();
    assert_ne!(own.base(), peers.base());
    assert_eq!((own.bytes(), peers.bytes()), (10_000, 10_000));

    own.view().copy_in(4_000, b"payload").unwrap();
    own.view().atomic_u64(64).unwrap().store(7, Ordering::Release);
    assert_eq!(peers.view().atomic_u64(64).unwrap().load(Ordering::Acquire), 7);
    let mut seen = [0; 7];
    peers.view().copy_out(4_000, &mut seen).unwrap();
    assert_eq!(&seen, b"payload");

    drop(own);
    let again = peers.try_clone().unwrap();
    peers.view().write_u32(9_996, 0xdead_beef).unwrap();
    assert_eq!(again.view().read_u32(9_996), Ok(0xdead_beef));
}

#[test]
fn new_memory_is_zero_and_populating_keeps_contents() {
    let segment = Segment::create("zero", 3 * 4096 + 5).unwrap();
    let mut bytes = vec![1; segment.bytes()];
    segment.view().copy_out(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0));

    segment.view().write_u64(8192, 42).unwrap();
    segment.populate(0, segment.bytes()).unwrap();
    segment.populate(4097, 4096).unwrap();
    segment.populate(segment.bytes(), 0).unwrap();
    assert_eq!(segment.view().read_u64(8192), Ok(42));
    let refused = segment.populate(1, segment.bytes());
    assert!(matches!(refused, Err(MemoryError::OutOfBounds { offset: 1, .. })), "{refused:?}");
}

#[test]
fn the_length_is_final() {
    let segment = Segment::create("sealed", 4096).unwrap();
    assert!(ftruncate(segment.fd(), 0).is_err());
    assert!(ftruncate(segment.fd(), 8192).is_err());
    assert!(fcntl(segment.fd(), FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_WRITE)).is_err());
}

#[test]
fn a_file_that_could_shrink_is_refused() {
    let all = [
        ("F_SEAL_SHRINK", SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL),
        ("F_SEAL_GROW", SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL),
        ("F_SEAL_SEAL", SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW),
    ];
    for (lacks, seals) in all {
        match Segment::open(memfd(4096, seals), 4096) {
            Err(MemoryError::Unsealed { missing }) => assert_eq!(missing, lacks),
            other => panic!("without {lacks}: {other:?}"),
        }
    }
}

#[test]
fn a_file_of_another_length_is_refused() {
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    for found in [0, 4095, 4097] {
        match Segment::open(memfd(found, seals), 4096) {
            Err(MemoryError::WrongSize { expected: 4096, found: seen }) => {
                assert_eq!(seen, found as u64);
            }
            other => panic!("{found} bytes: {other:?}"),
        }
    }
}

#[test]
fn what_is_no_memfd_is_refused() {
    let (end, _other_end) = nix::unistd::pipe().unwrap();
    let executable = File::open(std::env::current_exe().unwrap()).unwrap();
    for fd in [end, executable.into(), File::open("/dev/zero").unwrap().into()] {
        let answer = Segment::open(fd, 4096);
        assert!(
            matches!(answer, Err(MemoryError::NotMemfd | MemoryError::Unsealed { .. })),
            "{answer:?}"
        );
    }
}

#[test]
fn huge_pages_are_refused() {
    let flags = MFdFlags::MFD_ALLOW_SEALING | MFdFlags::from_bits_retain(MFD_HUGETLB);
    // A kernel without huge pages refuses the file itself, which leaves nothing to test.
    if let Ok(fd) = memfd_create("huge", flags) {
        let answer = Segment::open(fd, 4096);
        assert!(matches!(answer, Err(MemoryError::NotMemfd)), "{answer:?}");
    }
}

#[test]
fn lengths_no_file_can_have_are_refused() {
    for bytes in [0, usize::MAX, isize::MAX as usize + 1] {
        let answer = Segment::create("size", bytes);
        assert!(matches!(answer, Err(MemoryError::BadSize { .. })), "{bytes}: {answer:?}");
    }
    let answer = Segment::create("nul \0 in the name", 4096).map(|segment| segment.bytes());
    assert!(matches!(answer, Err(MemoryError::System { call: "memfd_create", .. })), "{answer:?}");
}
