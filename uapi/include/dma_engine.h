/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * User interface of /dev/dma_device: DMA copies between registered memory.
 */
#ifndef _UAPI_DMA_ENGINE_H
#define _UAPI_DMA_ENGINE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General format
 *
 * An open file of /dev/dma_device is a context: it owns regions, at most one
 * ring and the operations in flight. Nothing of it is global; closing the file
 * ends all of it, after the hardware has let go of the memory.
 *
 * Every ioctl takes a pointer to a struct whose first member is the __u32 @size
 * of that struct as the caller knows it.
 *
 * Growth rule. Structs grow at their end only, by whole multiples of 8 bytes,
 * and zero in a new field means what happened before the field existed.
 *
 *  - @size below the size of the first published layout: EINVAL.
 *  - @size below the driver's: missing input is taken as zero, output that does
 *    not fit is not written.
 *  - @size above the driver's: bytes that the driver does not know must be zero,
 *    otherwise E2BIG; they are left alone.
 *
 * The ring entries and the descriptor never change size. New meaning for their
 * reserved bits comes with a feature bit (&enum dma_engine_feature). Fields
 * named __reserved must be zero on the way in and are zero on the way out.
 *
 * Command numbers are built with _IO, not _IOWR. _IOWR would put the size of the
 * struct into the number, so that a struct could not grow without becoming
 * another command; here the size travels in the struct, where the driver can
 * check it. The price is that tracers cannot see size and direction in the
 * number; every struct below names both.
 *
 * Fields marked Output are ignored on the way in. They are written on success
 * only, except where a command says otherwise.
 *
 * All layouts are the same for 32-bit and 64-bit callers, and little or big
 * endian as the machine is: the interface never leaves the host.
 *
 * Lengths and offsets are bytes. Times are nanoseconds of CLOCK_MONOTONIC where
 * a name does not say otherwise.
 */

/**
 * DOC: Errors of every command
 *
 *  - ENOTTY: the command number is not known.
 *  - EINVAL: @size is too small, a reserved field is not zero, or a known field
 *    has a value that is never allowed.
 *  - E2BIG: the struct has a tail that the driver does not know and that is not
 *    zero.
 *  - EOPNOTSUPP: a flag or value is not known to this driver, or the feature
 *    behind it is not there. Look at the feature bits of DMA_ENGINE_QUERY.
 *  - EFAULT: the struct could not be read or written. When it could not be
 *    written, what the command made (region, file) has been undone.
 *  - ENOMEM: no memory, or the RLIMIT_MEMLOCK of the process would be exceeded.
 *  - EPERM: the caller's address space is not the one that opened the file (a
 *    child after fork, a receiver of the file over a socket). Such a process
 *    opens the device itself and imports regions.
 *  - EPROTO: no DMA_ENGINE_QUERY of this file has succeeded yet.
 *  - ENODEV: the driver is being unloaded.
 *
 * Errors that one command adds are listed with its struct.
 */

/**
 * DOC: Errors of an operation
 *
 * They stand as -errno in &struct dma_engine_cqe, and are the errno of
 * DMA_ENGINE_SUBMIT. After an error any part of the destination may have been
 * written; no signal was given. No operation ends without a completion, and
 * none takes longer than the op_timeout_ms of &struct dma_engine_query.
 *
 *  - EINVAL: the entry breaks a static rule: opcode 0, a reserved byte, length
 *    0 where one is needed, a field not 0 where the opcode has no use for it,
 *    neither end on this node or the wrong one, source and destination overlap,
 *    two flags that exclude one another, a signal address that is not a multiple
 *    of 8.
 *  - EOPNOTSUPP: unknown opcode or flag; or no path that the flags allow, for
 *    example DMA_ENGINE_DESC_CHANNEL without a channel, or memory that the CPU
 *    cannot reach where the CPU would have to.
 *  - ENOENT: a region id is not registered with this file, or is stale.
 *  - ERANGE: offset and length leave the region.
 *  - EACCES: the region was registered or imported without the needed right.
 *  - EHOSTUNREACH: a node other than this one is named and no proxy is attached,
 *    the proxy went away, or it knows no way to that node.
 *  - ECANCELED: an earlier entry of the same chain failed, or the file was
 *    closed before the operation started.
 *  - ESTALE: the region is an import whose owner unregistered it or exited.
 *  - EREMOTEIO: the region is a dma-buf that its exporter revoked.
 *  - EIO: the channel reported an error.
 *  - ETIMEDOUT: the channel did not answer in time; it has been stopped and does
 *    not touch the memory any more.
 *  - ENODEV: the channel went away during the operation and nothing else could
 *    take over.
 *  - ENOMEM: no memory to start the operation.
 */

/**
 * DOC: Versions
 *
 * The version rises only with a change that breaks callers; compatible additions
 * are feature bits. Each side states its version and the oldest version of the
 * other side that it accepts. They understand one another when
 *
 *	driver_version >= abi_oldest  &&  abi_version >= driver_oldest
 *
 * DMA_ENGINE_QUERY checks both and must be the first command on a file.
 */

/** define DMA_ENGINE_ABI_VERSION - Version of the interface in this header. */
#define DMA_ENGINE_ABI_VERSION		1
/** define DMA_ENGINE_ABI_OLDEST - Oldest peer this header is written for. */
#define DMA_ENGINE_ABI_OLDEST		1

/** define DMA_ENGINE_DEVICE - Path of the device node. */
#define DMA_ENGINE_DEVICE		"/dev/dma_device"

/**
 * DOC: Addresses
 *
 * An address is a region id and an offset in one number:
 *
 *	region id << DMA_ENGINE_OFFSET_BITS | offset in bytes
 *
 * Region ids are 24 bits wide, valid in the file that got them and nowhere else.
 * Callers treat them as opaque. The driver builds them as
 *
 *	generation << DMA_ENGINE_REGION_SLOT_BITS | slot
 *
 * with a generation of 1 to 1023, so that no id is 0. The slot of an
 * unregistered region goes to the end of the queue of free slots and its
 * generation steps on (1023 is followed by 1): a stale id names nothing, and
 * becomes valid again after 1023 further registrations in its slot at the
 * earliest.
 */

/** define DMA_ENGINE_OFFSET_BITS - Bits of an address that are the offset. */
#define DMA_ENGINE_OFFSET_BITS			40
/** define DMA_ENGINE_REGION_BITS - Bits of an address that are the region id. */
#define DMA_ENGINE_REGION_BITS			24
/** define DMA_ENGINE_REGION_SLOT_BITS - Low bits of a region id: the slot. */
#define DMA_ENGINE_REGION_SLOT_BITS		14
/** define DMA_ENGINE_REGION_GENERATION_BITS - High bits: the generation. */
#define DMA_ENGINE_REGION_GENERATION_BITS	10
/** define DMA_ENGINE_MAX_REGION_BYTES - Largest region: 2^40 bytes. */
#define DMA_ENGINE_MAX_REGION_BYTES		((__u64)1 << DMA_ENGINE_OFFSET_BITS)
/** define DMA_ENGINE_ADDRESS - Address of byte @offset of region @region. */
#define DMA_ENGINE_ADDRESS(region, offset) \
	((__u64)(region) << DMA_ENGINE_OFFSET_BITS | (__u64)(offset))

/**
 * enum dma_engine_opcode - What a descriptor does.
 * @DMA_ENGINE_OP_READ: Pull @length bytes from src_addr on src_node to dst_addr
 *                      on this node; dst_node must be this node. A plain copy
 *                      when src_node is this node too.
 * @DMA_ENGINE_OP_WRITE: Push @length bytes from src_addr on this node to
 *                       dst_addr on dst_node; src_node must be this node. A
 *                       plain copy when dst_node is this node too.
 * @DMA_ENGINE_OP_NOP: Move nothing, complete. Addresses, length and nodes must be
 *                     0, and so must the descriptor's flags.
 * @DMA_ENGINE_OP_FENCE: Move nothing. Starts when every earlier entry of the ring
 *                       is complete; no later entry starts before it is complete.
 *                       The rest of the descriptor is 0 as for a no-op.
 * @DMA_ENGINE_OP_FILL: Fill @length bytes at dst_addr with the eight bytes of
 *                      src_addr as they lie in memory, repeated; the last repeat
 *                      may be cut. Both nodes must be this node.
 *
 * 0 is not an opcode, so that a zeroed entry is refused. Further opcodes come
 * with feature bits.
 */
enum dma_engine_opcode {
	DMA_ENGINE_OP_READ = 0x01,
	DMA_ENGINE_OP_WRITE = 0x02,
	DMA_ENGINE_OP_NOP = 0x03,
	DMA_ENGINE_OP_FENCE = 0x04,
	DMA_ENGINE_OP_FILL = 0x05
};

/**
 * enum dma_engine_desc_flags - &struct dma_descriptor.flags
 * @DMA_ENGINE_DESC_CHANNEL: Use a hardware channel or fail with EOPNOTSUPP. Heads
 *                           and tails below the channel's alignment count as
 *                           failing. Excludes DMA_ENGINE_DESC_CPU.
 * @DMA_ENGINE_DESC_CPU: Copy with the CPU, for short messages whose destination
 *                       is read at once. Excludes DMA_ENGINE_DESC_CHANNEL.
 *
 * With neither the driver chooses, and DMA_ENGINE_CQE_CPU tells what it did.
 */
enum dma_engine_desc_flags {
	DMA_ENGINE_DESC_CHANNEL = 1 << 0,
	DMA_ENGINE_DESC_CPU = 1 << 1
};

/**
 * struct dma_descriptor - One DMA operation, 32 bytes.
 * @src_addr: Address of the first byte read; for DMA_ENGINE_OP_FILL the pattern.
 * @dst_addr: Address of the first byte written.
 * @length: Bytes to move, 1 to 2^32 - 1; 0 for opcodes that move nothing.
 * @src_node: Node that @src_addr belongs to. A node is a host, not a NUMA node.
 * @dst_node: Node that @dst_addr belongs to.
 * @opcode: One of &enum dma_engine_opcode.
 * @flags: Bits of &enum dma_engine_desc_flags.
 * @__reserved: Must be 0.
 *
 * The number of this node is in &struct dma_engine_query. An address of another
 * node is handed to the proxy as it is; its region id is one of the proxy there.
 *
 * Source and destination must not overlap. Within one region the driver refuses
 * it; where two regions share pages the bytes of the overlap are undefined.
 *
 * Memory is followed by page, not by virtual address: what the process maps at
 * the registered addresses later is not what is copied.
 */
struct dma_descriptor {
	__aligned_u64 src_addr;
	__aligned_u64 dst_addr;
	__u32 length;
	__u16 src_node;
	__u16 dst_node;
	__u8 opcode;
	__u8 flags;
	__u8 __reserved[6];
};

/**
 * enum dma_engine_sqe_flags - &struct dma_engine_sqe.flags
 * @DMA_ENGINE_SQE_LINK: The next entry starts only after this one has completed
 *                       without an error; otherwise it and the rest of the chain
 *                       complete with ECANCELED. A chain ends with the first
 *                       entry without this flag, and at the tail that the driver
 *                       has read: publish a chain with one store of the tail.
 * @DMA_ENGINE_SQE_DRAIN: Start only when every earlier entry of the ring is
 *                        complete. Later entries are not held back by it.
 * @DMA_ENGINE_SQE_SIGNAL_STORE: On success store signal_value at signal_addr.
 * @DMA_ENGINE_SQE_SIGNAL_ADD: On success add signal_value to the u64 at
 *                             signal_addr, modulo 2^64. Excludes
 *                             DMA_ENGINE_SQE_SIGNAL_STORE.
 *
 * Without flags entries start and complete in any order.
 *
 * A signal is one atomic access of a naturally aligned u64, as CPUs see it. The
 * bytes of the operation are visible to whoever sees the signal with acquire
 * semantics, and the signal is given before the completion is published. Its
 * region needs the right to write and must be reachable by the CPU.
 */
enum dma_engine_sqe_flags {
	DMA_ENGINE_SQE_LINK = 1 << 0,
	DMA_ENGINE_SQE_DRAIN = 1 << 1,
	DMA_ENGINE_SQE_SIGNAL_STORE = 1 << 2,
	DMA_ENGINE_SQE_SIGNAL_ADD = 1 << 3
};

/**
 * struct dma_engine_sqe - Submission entry, 64 bytes.
 * @desc: What to do.
 * @user_data: Comes back in the completion, otherwise not looked at.
 * @signal_addr: Address of the u64 to signal, a multiple of 8; 0 without a signal
 *               flag. On this node.
 * @signal_value: Operand of the signal; 0 without a signal flag.
 * @flags: Bits of &enum dma_engine_sqe_flags.
 * @__reserved: Must be 0.
 *
 * The driver copies an entry once and looks only at its copy.
 */
struct dma_engine_sqe {
	struct dma_descriptor desc;
	__aligned_u64 user_data;
	__aligned_u64 signal_addr;
	__aligned_u64 signal_value;
	__u32 flags;
	__u32 __reserved;
};

/**
 * enum dma_engine_cqe_flags - &struct dma_engine_cqe.flags
 * @DMA_ENGINE_CQE_ERROR: result is -errno. Without it, result is a number of
 *                        bytes, which may look like a negative number.
 * @DMA_ENGINE_CQE_CPU: The CPU moved at least a part of the bytes.
 * @DMA_ENGINE_CQE_PROXY: The proxy moved the bytes.
 */
enum dma_engine_cqe_flags {
	DMA_ENGINE_CQE_ERROR = 1 << 0,
	DMA_ENGINE_CQE_CPU = 1 << 1,
	DMA_ENGINE_CQE_PROXY = 1 << 2
};

/**
 * struct dma_engine_cqe - Completion entry, 16 bytes.
 * @user_data: That of the submission entry.
 * @result: Bytes moved, all that were asked for; with DMA_ENGINE_CQE_ERROR
 *          -errno as a 32-bit two's complement number.
 * @flags: Bits of &enum dma_engine_cqe_flags. Callers ignore bits they do not
 *         know.
 *
 * Each submission entry taken by the driver gives exactly one completion.
 */
struct dma_engine_cqe {
	__aligned_u64 user_data;
	__u32 result;
	__u32 flags;
};

/**
 * DOC: Rings
 *
 * The submission queue (SQ) and the completion queue (CQ) lie in one mapping:
 * mmap(2) with MAP_SHARED, PROT_READ | PROT_WRITE, the offset and the length that
 * DMA_ENGINE_RING_SETUP returned. Any other offset or length and MAP_PRIVATE fail
 * with EINVAL, PROT_EXEC with EACCES, another address space with EPERM. The mapping
 * is not inherited over fork and does not show in core dumps.
 *
 * Queues have a power of two of entries. Heads and tails are __u32 that count for
 * ever and wrap at 2^32; the slot of an index is index & (entries - 1). Tail
 * minus head, modulo 2^32, is the number of entries in a queue, never more than
 * it has slots.
 *
 *	word		written by	read by
 *	sq_tail		caller		driver	store-release / load-acquire
 *	sq_head		driver		caller	store-release / load-acquire
 *	cq_tail		driver		caller	store-release / load-acquire
 *	cq_head		caller		driver	store-release / load-acquire
 *	sq_flags	driver		caller	&enum dma_engine_sq_flags
 *	cq_flags	caller		driver	&enum dma_engine_cq_flags
 *	cq_stalls	driver		caller	how often the CQ held the SQ up
 *
 * The driver keeps heads and tails of its own and never reads back a word that
 * it wrote. It takes sq_tail and cq_head as claims: a claim that is not a
 * possible distance sets DMA_ENGINE_SQ_FAILED, ENTER then fails with EBADMSG, and
 * nothing further is taken; operations in flight end.
 *
 * A completion slot is reserved when an entry is taken, so that posting a
 * completion cannot fail. When all slots are taken or reserved the driver leaves
 * entries in the SQ, counts that in cq_stalls and sets DMA_ENGINE_SQ_CQ_FULL until
 * the caller has moved cq_head and ENTER or the polling thread takes entries
 * again. Nothing is ever lost. A caller that has no more operations under way than
 * the CQ has slots never meets this.
 *
 * poll(2): POLLIN, a completion is there; POLLOUT, the SQ has room; POLLERR, the
 * ring has failed; POLLPRI, a request waits for the proxy.
 */

/**
 * enum dma_engine_sq_flags - Bits of the word at &struct
 *                            dma_engine_ring_offsets.sq_flags
 * @DMA_ENGINE_SQ_NEED_WAKEUP: The polling thread sleeps. After publishing a tail
 *                             the caller needs a full barrier, reads this bit,
 *                             and if it is set calls ENTER with
 *                             DMA_ENGINE_ENTER_WAKE. Always set on a ring that
 *                             has no such thread.
 * @DMA_ENGINE_SQ_CQ_FULL: Entries wait because no completion slot is free.
 * @DMA_ENGINE_SQ_FAILED: The ring is broken and takes nothing any more. Close the
 *                        file.
 */
enum dma_engine_sq_flags {
	DMA_ENGINE_SQ_NEED_WAKEUP = 1 << 0,
	DMA_ENGINE_SQ_CQ_FULL = 1 << 1,
	DMA_ENGINE_SQ_FAILED = 1 << 2
};

/**
 * enum dma_engine_cq_flags - Bits of the word at &struct
 *                            dma_engine_ring_offsets.cq_flags
 * @DMA_ENGINE_CQ_WAITING: The caller sleeps, or is about to, until cq_tail moves.
 *                         After setting it the caller needs a full barrier and
 *                         looks at cq_tail once more. Looked at by eventfds
 *                         attached with DMA_ENGINE_EVENTFD_ON_DEMAND only.
 */
enum dma_engine_cq_flags {
	DMA_ENGINE_CQ_WAITING = 1 << 0
};

/**
 * enum dma_engine_feature - Bits of &struct dma_engine_query.features
 * @DMA_ENGINE_FEATURE_CHANNELS: At least one hardware channel is in use.
 * @DMA_ENGINE_FEATURE_FILL: DMA_ENGINE_OP_FILL is known.
 * @DMA_ENGINE_FEATURE_SIGNAL: The two signal flags of entries are known.
 * @DMA_ENGINE_FEATURE_DMABUF: DMA_ENGINE_REGISTER_DMABUF is known.
 * @DMA_ENGINE_FEATURE_PEER: Channels may reach memory of other devices without
 *                           passing through host memory.
 * @DMA_ENGINE_FEATURE_EXPORT: Regions can be exported and imported.
 * @DMA_ENGINE_FEATURE_PROXY: A proxy can be attached.
 * @DMA_ENGINE_FEATURE_POLL: DMA_ENGINE_SETUP_POLL is known.
 */
enum dma_engine_feature {
	DMA_ENGINE_FEATURE_CHANNELS = 1 << 0,
	DMA_ENGINE_FEATURE_FILL = 1 << 1,
	DMA_ENGINE_FEATURE_SIGNAL = 1 << 2,
	DMA_ENGINE_FEATURE_DMABUF = 1 << 3,
	DMA_ENGINE_FEATURE_PEER = 1 << 4,
	DMA_ENGINE_FEATURE_EXPORT = 1 << 5,
	DMA_ENGINE_FEATURE_PROXY = 1 << 6,
	DMA_ENGINE_FEATURE_POLL = 1 << 7
};

/** define DMA_ENGINE_TYPE - Type byte of the ioctl numbers. */
#define DMA_ENGINE_TYPE			0xDE

/**
 * enum dma_engine_command - Low byte of the ioctl numbers.
 * @DMA_ENGINE_CMD_QUERY: DMA_ENGINE_QUERY
 * @DMA_ENGINE_CMD_RING_SETUP: DMA_ENGINE_RING_SETUP
 * @DMA_ENGINE_CMD_ENTER: DMA_ENGINE_ENTER
 * @DMA_ENGINE_CMD_SUBMIT: DMA_ENGINE_SUBMIT
 * @DMA_ENGINE_CMD_REGISTER_MEMORY: DMA_ENGINE_REGISTER_MEMORY
 * @DMA_ENGINE_CMD_REGISTER_DMABUF: DMA_ENGINE_REGISTER_DMABUF
 * @DMA_ENGINE_CMD_EXPORT: DMA_ENGINE_EXPORT
 * @DMA_ENGINE_CMD_IMPORT: DMA_ENGINE_IMPORT
 * @DMA_ENGINE_CMD_UNREGISTER: DMA_ENGINE_UNREGISTER
 * @DMA_ENGINE_CMD_ATTACH_EVENTFD: DMA_ENGINE_ATTACH_EVENTFD
 * @DMA_ENGINE_CMD_ATTACH_PROXY: DMA_ENGINE_ATTACH_PROXY
 */
enum dma_engine_command {
	DMA_ENGINE_CMD_QUERY = 0x00,
	DMA_ENGINE_CMD_RING_SETUP = 0x01,
	DMA_ENGINE_CMD_ENTER = 0x02,
	DMA_ENGINE_CMD_SUBMIT = 0x03,
	DMA_ENGINE_CMD_REGISTER_MEMORY = 0x04,
	DMA_ENGINE_CMD_REGISTER_DMABUF = 0x05,
	DMA_ENGINE_CMD_EXPORT = 0x06,
	DMA_ENGINE_CMD_IMPORT = 0x07,
	DMA_ENGINE_CMD_UNREGISTER = 0x08,
	DMA_ENGINE_CMD_ATTACH_EVENTFD = 0x09,
	DMA_ENGINE_CMD_ATTACH_PROXY = 0x0a
};

/**
 * struct dma_engine_query - ioctl(DMA_ENGINE_QUERY)
 * @size: sizeof(struct dma_engine_query)
 * @flags: Must be 0.
 * @abi_version: DMA_ENGINE_ABI_VERSION of the caller.
 * @abi_oldest: Oldest version of the driver that the caller accepts.
 * @driver_version: Output: version of the driver.
 * @driver_oldest: Output: oldest version of a caller that the driver accepts.
 * @features: Output: bits of &enum dma_engine_feature.
 * @node: Output: number of this node; 0 until a proxy has set it.
 * @__reserved: Must be 0.
 * @channels: Output: hardware channels in use; 0: the CPU copies.
 * @copy_align: Output: multiple of bytes that source, destination and length need
 *              for a channel to do all of an operation; a power of two.
 * @max_entries: Output: most entries of a submission queue. A completion queue may
 *               have twice as many.
 * @max_in_flight: Output: most operations of one file that run at once; more wait
 *                 in the ring.
 * @max_regions: Output: most regions of one file, imports included.
 * @op_timeout_ms: Output: milliseconds after which an operation is ended.
 * @max_region_bytes: Output: largest region.
 * @pinned_limit_bytes: Output: most bytes the process may have pinned; all ones
 *                      where there is no limit.
 * @pinned_bytes: Output: bytes the process has pinned now, by any driver.
 *
 * Says who talks to whom and what is possible. May be repeated.
 *
 * Errors: EPROTONOSUPPORT, one side is too old for the other; the Output fields
 * are written then, so that the caller can say which.
 */
struct dma_engine_query {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 abi_oldest;
	__u32 driver_version;
	__u32 driver_oldest;
	__aligned_u64 features;
	__u16 node;
	__u16 __reserved[3];
	__u32 channels;
	__u32 copy_align;
	__u32 max_entries;
	__u32 max_in_flight;
	__u32 max_regions;
	__u32 op_timeout_ms;
	__aligned_u64 max_region_bytes;
	__aligned_u64 pinned_limit_bytes;
	__aligned_u64 pinned_bytes;
};
#define DMA_ENGINE_QUERY _IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_QUERY)

/**
 * struct dma_engine_ring_offsets - Where things are in the ring mapping.
 * @sq_head: Word: next submission entry the driver takes.
 * @sq_tail: Word: next submission slot the caller fills.
 * @sq_flags: Word: &enum dma_engine_sq_flags.
 * @sq_entries: First of the submission entries.
 * @cq_head: Word: next completion the caller reads.
 * @cq_tail: Word: next completion slot the driver fills.
 * @cq_flags: Word: &enum dma_engine_cq_flags.
 * @cq_stalls: Word: times that entries had to wait for a completion slot, modulo
 *             2^32.
 * @cq_entries: First of the completion entries.
 * @__reserved: 0.
 *
 * Bytes from the start of the mapping. Words are multiples of 4, entries multiples
 * of 64. Nothing overlaps. Callers check this: it is theirs to trust.
 */
struct dma_engine_ring_offsets {
	__u32 sq_head;
	__u32 sq_tail;
	__u32 sq_flags;
	__u32 sq_entries;
	__u32 cq_head;
	__u32 cq_tail;
	__u32 cq_flags;
	__u32 cq_stalls;
	__u32 cq_entries;
	__u32 __reserved[3];
};

/** define DMA_ENGINE_NUMA_ANY - No wish for a NUMA node. */
#define DMA_ENGINE_NUMA_ANY		(-1)

/**
 * enum dma_engine_setup_flags - &struct dma_engine_ring_setup.flags
 * @DMA_ENGINE_SETUP_POLL: A thread of the driver looks for entries, so that
 *                         submitting takes no system call while it is awake.
 */
enum dma_engine_setup_flags {
	DMA_ENGINE_SETUP_POLL = 1 << 0
};

/**
 * struct dma_engine_ring_setup - ioctl(DMA_ENGINE_RING_SETUP)
 * @size: sizeof(struct dma_engine_ring_setup)
 * @flags: Bits of &enum dma_engine_setup_flags.
 * @sq_entries: Slots for submissions, a power of two from 1 to max_entries.
 * @cq_entries: Slots for completions, a power of two from sq_entries to twice
 *              max_entries; 0 for twice sq_entries.
 * @numa_node: NUMA node for the ring and, if it can be, for the channel; a hint.
 *             DMA_ENGINE_NUMA_ANY for none.
 * @poll_idle_us: Microseconds without work after which the polling thread sleeps;
 *                0 for the driver's choice. 0 without DMA_ENGINE_SETUP_POLL.
 * @offsets: Output: where things are in the mapping.
 * @map_offset: Output: offset for mmap(2).
 * @map_bytes: Output: length for mmap(2), a multiple of the page size.
 *
 * Makes the ring of the file.
 *
 * Errors: EEXIST, the file has a ring; EINVAL, a number of entries is not a power
 * of two or out of range, or @numa_node is not an online node.
 */
struct dma_engine_ring_setup {
	__u32 size;
	__u32 flags;
	__u32 sq_entries;
	__u32 cq_entries;
	__s32 numa_node;
	__u32 poll_idle_us;
	struct dma_engine_ring_offsets offsets;
	__aligned_u64 map_offset;
	__aligned_u64 map_bytes;
};
#define DMA_ENGINE_RING_SETUP _IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_RING_SETUP)

/**
 * enum dma_engine_enter_flags - &struct dma_engine_enter.flags
 * @DMA_ENGINE_ENTER_WAKE: Wake the polling thread.
 * @DMA_ENGINE_ENTER_ABSOLUTE: timeout_ns is a point of CLOCK_MONOTONIC, not a
 *                             duration; a call that EINTR ended can be repeated
 *                             as it is.
 */
enum dma_engine_enter_flags {
	DMA_ENGINE_ENTER_WAKE = 1 << 0,
	DMA_ENGINE_ENTER_ABSOLUTE = 1 << 1
};

/**
 * struct dma_engine_enter - ioctl(DMA_ENGINE_ENTER)
 * @size: sizeof(struct dma_engine_enter)
 * @flags: Bits of &enum dma_engine_enter_flags.
 * @to_submit: Most entries to take from the SQ. Must be 0 with
 *             DMA_ENGINE_SETUP_POLL.
 * @min_complete: Wait until so many completions are in the CQ, at most its slots;
 *                0 does not wait.
 * @timeout_ns: Longest wait in nanoseconds, at most 2^63 - 1. Must be 0 where
 *              @min_complete is 0.
 * @submitted: Output: entries taken. Fewer than @to_submit when the SQ had fewer,
 *             or a completion slot or room for one more operation was lacking.
 * @completed: Output: completions in the CQ now.
 *
 * Takes entries, then waits for completions. An entry that breaks a rule is taken
 * and completes with an error.
 *
 * Errors: ENXIO, the file has no ring; EBADMSG, the ring has failed; ETIME, the
 * time is over; EINTR, a signal came. ETIME and EINTR end only the wait: the
 * Output fields are written, and what was submitted goes on and completes. EINTR
 * comes only where something was submitted; otherwise the call is restarted.
 */
struct dma_engine_enter {
	__u32 size;
	__u32 flags;
	__u32 to_submit;
	__u32 min_complete;
	__aligned_u64 timeout_ns;
	__u32 submitted;
	__u32 completed;
};
#define DMA_ENGINE_ENTER _IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_ENTER)

/**
 * struct dma_engine_submit - ioctl(DMA_ENGINE_SUBMIT)
 * @size: sizeof(struct dma_engine_submit)
 * @flags: Must be 0.
 * @desc: What to do. DMA_ENGINE_OP_FENCE is refused with EINVAL.
 * @result: Output: bytes moved.
 * @completion_flags: Output: bits of &enum dma_engine_cqe_flags.
 *
 * One operation without a ring; returns when it is over, which op_timeout_ms
 * bounds. Only a fatal signal ends the call earlier. Not ordered with the ring.
 *
 * Errors: those of an operation; EBUSY, max_in_flight operations run already.
 */
struct dma_engine_submit {
	__u32 size;
	__u32 flags;
	struct dma_descriptor desc;
	__u32 result;
	__u32 completion_flags;
};
#define DMA_ENGINE_SUBMIT _IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_SUBMIT)

/**
 * enum dma_engine_access - Rights on a region.
 * @DMA_ENGINE_ACCESS_READ: The region may be a source.
 * @DMA_ENGINE_ACCESS_WRITE: The region may be a destination and may be signalled.
 */
enum dma_engine_access {
	DMA_ENGINE_ACCESS_READ = 1 << 0,
	DMA_ENGINE_ACCESS_WRITE = 1 << 1
};

/**
 * enum dma_engine_region_properties - What a region is like.
 * @DMA_ENGINE_REGION_CPU: The CPU can reach its bytes.
 * @DMA_ENGINE_REGION_CHANNEL: At least one hardware channel can.
 * @DMA_ENGINE_REGION_PEER: It is memory of a device.
 * @DMA_ENGINE_REGION_REVOCABLE: Its owner or exporter can take it away.
 */
enum dma_engine_region_properties {
	DMA_ENGINE_REGION_CPU = 1 << 0,
	DMA_ENGINE_REGION_CHANNEL = 1 << 1,
	DMA_ENGINE_REGION_PEER = 1 << 2,
	DMA_ENGINE_REGION_REVOCABLE = 1 << 3
};

/**
 * struct dma_engine_register_memory - ioctl(DMA_ENGINE_REGISTER_MEMORY)
 * @size: sizeof(struct dma_engine_register_memory)
 * @flags: Must be 0.
 * @address: First byte in the caller's address space; need not be aligned.
 * @length: Bytes, 1 to max_region_bytes.
 * @access: Bits of &enum dma_engine_access, at least one.
 * @region: Output: region id.
 * @properties: Output: bits of &enum dma_engine_region_properties.
 * @__reserved: Must be 0.
 *
 * Pins the pages behind the range until the region is unregistered and charges
 * them to the process. Offset 0 is the byte at @address.
 *
 * Errors: EOVERFLOW, @address plus @length leaves the address space; EFAULT, the
 * range is not mapped, not writable where DMA_ENGINE_ACCESS_WRITE asks for it, or
 * memory that cannot be pinned (device mappings, secret memory, writable mappings
 * of files); ENOSPC, max_regions are registered; EINTR, a signal came and nothing
 * is registered.
 */
struct dma_engine_register_memory {
	__u32 size;
	__u32 flags;
	__aligned_u64 address;
	__aligned_u64 length;
	__u32 access;
	__u32 region;
	__u32 properties;
	__u32 __reserved;
};
#define DMA_ENGINE_REGISTER_MEMORY \
	_IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_REGISTER_MEMORY)

/**
 * struct dma_engine_register_dmabuf - ioctl(DMA_ENGINE_REGISTER_DMABUF)
 * @size: sizeof(struct dma_engine_register_dmabuf)
 * @flags: Must be 0.
 * @fd: File of a dma-buf. It may be closed afterwards.
 * @access: Bits of &enum dma_engine_access, at least one.
 * @offset: First byte of the dma-buf that the region has.
 * @length: Bytes; 0 for all from @offset.
 * @region: Output: region id.
 * @properties: Output: bits of &enum dma_engine_region_properties.
 *
 * Operations on memory that the CPU cannot reach fail with EOPNOTSUPP when no
 * channel serves them, and with EREMOTEIO after the exporter has revoked it.
 *
 * Errors: EBADF, @fd is not open; EINVAL, it is not a dma-buf or the driver's own;
 * ERANGE, @offset and @length leave the dma-buf; EACCES, the file was not opened
 * for the access; ENOSPC, max_regions are registered; EOPNOTSUPP, the exporter
 * refuses every channel and the CPU cannot reach the memory; EINTR.
 */
struct dma_engine_register_dmabuf {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 access;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 region;
	__u32 properties;
};
#define DMA_ENGINE_REGISTER_DMABUF \
	_IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_REGISTER_DMABUF)

/**
 * struct dma_engine_export - ioctl(DMA_ENGINE_EXPORT)
 * @size: sizeof(struct dma_engine_export)
 * @flags: Must be 0.
 * @region: Region of this file that is not itself an import.
 * @access: Rights to give, a part of those of the region.
 * @offset: First byte of the region that the other side sees.
 * @length: Bytes; 0 for all from @offset.
 * @fd: Output: file that stands for the right, close-on-exec.
 * @__reserved: Must be 0.
 *
 * The file is a capability: who has it may import the range, with these rights and
 * no more. Pass it over a Unix socket. It can do nothing else.
 *
 * Unregistering the region, or closing the file that registered it, revokes every
 * export and every import of it.
 *
 * Errors: ENOENT, @region is not registered; EACCES, @access is more than the
 * region has; ERANGE, @offset and @length leave it; EOPNOTSUPP, it is an import;
 * EMFILE, ENFILE, no file is free.
 */
struct dma_engine_export {
	__u32 size;
	__u32 flags;
	__u32 region;
	__u32 access;
	__aligned_u64 offset;
	__aligned_u64 length;
	__s32 fd;
	__u32 __reserved;
};
#define DMA_ENGINE_EXPORT _IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_EXPORT)

/**
 * struct dma_engine_import - ioctl(DMA_ENGINE_IMPORT)
 * @size: sizeof(struct dma_engine_import)
 * @flags: Must be 0.
 * @fd: File of DMA_ENGINE_EXPORT. It may be closed afterwards.
 * @access: Rights to take, a part of those given; at least one.
 * @length: Output: bytes of the range.
 * @region: Output: region id in this file.
 * @properties: Output: bits of &enum dma_engine_region_properties.
 *
 * The pages stay charged to their owner.
 *
 * Errors: EBADF, @fd is not open; EINVAL, it is not of DMA_ENGINE_EXPORT; EACCES,
 * @access is more than was given; ESTALE, the region has been revoked; ENOSPC,
 * max_regions are registered.
 */
struct dma_engine_import {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 access;
	__aligned_u64 length;
	__u32 region;
	__u32 properties;
};
#define DMA_ENGINE_IMPORT _IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_IMPORT)

/**
 * struct dma_engine_unregister - ioctl(DMA_ENGINE_UNREGISTER)
 * @size: sizeof(struct dma_engine_unregister)
 * @flags: Must be 0.
 * @region: Region id.
 * @__reserved: Must be 0.
 *
 * The id names nothing from the start of the call on: entries not yet taken fail
 * with ENOENT. Returns when no operation uses the memory any more, in this file or
 * an importing one; op_timeout_ms bounds that. Only a fatal signal ends the call
 * earlier, and the memory is let go all the same.
 *
 * Errors: ENOENT, @region is not registered, or another thread unregisters it.
 */
struct dma_engine_unregister {
	__u32 size;
	__u32 flags;
	__u32 region;
	__u32 __reserved;
};
#define DMA_ENGINE_UNREGISTER _IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_UNREGISTER)

/**
 * enum dma_engine_eventfd_flags - &struct dma_engine_attach_eventfd.flags
 * @DMA_ENGINE_EVENTFD_ON_DEMAND: Signal only while DMA_ENGINE_CQ_WAITING is set.
 */
enum dma_engine_eventfd_flags {
	DMA_ENGINE_EVENTFD_ON_DEMAND = 1 << 0
};

/**
 * struct dma_engine_attach_eventfd - ioctl(DMA_ENGINE_ATTACH_EVENTFD)
 * @size: sizeof(struct dma_engine_attach_eventfd)
 * @flags: Bits of &enum dma_engine_eventfd_flags.
 * @fd: An eventfd, or -1 to detach. It replaces the one attached before.
 * @__reserved: Must be 0.
 *
 * The eventfd is signalled after completions were published, and when the ring
 * fails. Several completions may share one signal.
 *
 * Errors: ENXIO, the file has no ring; EBADF, @fd is not open; EINVAL, it is not an
 * eventfd.
 */
struct dma_engine_attach_eventfd {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 __reserved;
};
#define DMA_ENGINE_ATTACH_EVENTFD \
	_IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_ATTACH_EVENTFD)

/**
 * struct dma_engine_attach_proxy - ioctl(DMA_ENGINE_ATTACH_PROXY)
 * @size: sizeof(struct dma_engine_attach_proxy)
 * @flags: Must be 0.
 * @node: Number of this node from now on.
 * @__reserved: Must be 0.
 * @max_requests: Most requests handed out and not answered, 1 to max_in_flight.
 *
 * Makes this file the proxy of the node until it is closed. Descriptors for other
 * nodes become requests: read(2) returns whole &struct dma_engine_proxy_request,
 * write(2) takes whole &struct dma_engine_proxy_reply. The number of the node
 * outlives the proxy; requests not answered then fail with EHOSTUNREACH.
 *
 * Errors: EACCES, the caller lacks CAP_NET_ADMIN; EBUSY, there is a proxy.
 */
struct dma_engine_attach_proxy {
	__u32 size;
	__u32 flags;
	__u16 node;
	__u16 __reserved;
	__u32 max_requests;
};
#define DMA_ENGINE_ATTACH_PROXY \
	_IO(DMA_ENGINE_TYPE, DMA_ENGINE_CMD_ATTACH_PROXY)

/**
 * struct dma_engine_proxy_request - What the proxy reads, 64 bytes.
 * @id: Number for the reply.
 * @desc: What to do. The address on this node names a region of the proxy's own
 *        file, lent until the reply, with the right the operation needs; it can be
 *        used in descriptors but not exported. The other address is as submitted.
 * @deadline_ns: When the request fails with ETIMEDOUT, on CLOCK_MONOTONIC.
 * @uid: User that submitted it, in the proxy's user namespace.
 * @__reserved: 0.
 *
 * read(2) errors: EINVAL, the buffer is smaller than one request, or the file is
 * not the proxy; EAGAIN, none waits and the file is O_NONBLOCK; EINTR.
 */
struct dma_engine_proxy_request {
	__aligned_u64 id;
	struct dma_descriptor desc;
	__aligned_u64 deadline_ns;
	__u32 uid;
	__u32 __reserved[3];
};

/**
 * struct dma_engine_proxy_reply - What the proxy writes, 16 bytes.
 * @id: That of the request.
 * @result: As in &struct dma_engine_cqe.
 * @flags: 0 or DMA_ENGINE_CQE_ERROR.
 *
 * write(2) errors: EINVAL, not a whole number of replies, a flag is not known, or
 * result is not that of the request and no errno from 1 to 4095; ENOENT, @id is
 * not handed out, for example because its deadline is over. Replies before a bad
 * one count; the call returns their bytes.
 */
struct dma_engine_proxy_reply {
	__aligned_u64 id;
	__u32 result;
	__u32 flags;
};

#endif /* _UAPI_DMA_ENGINE_H */
