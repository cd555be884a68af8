//! One DMA operation.

/// What a descriptor does.
pub mod opcode {
    /// Pull from the source node to this node.
    pub const READ: u8 = 0x01;
    /// Push from this node to the destination node.
    pub const WRITE: u8 = 0x02;
    /// Move nothing, complete.
    pub const NOP: u8 = 0x03;
    /// Order all earlier entries before all later ones.
    pub const FENCE: u8 = 0x04;
    /// Fill the destination with the eight bytes of `src_addr`.
    pub const FILL: u8 = 0x05;
}

/// Bits of [`Descriptor::flags`].
pub mod flags {
    /// Use a hardware channel or fail.
    pub const CHANNEL: u8 = 1 << 0;
    /// Copy with the CPU.
    pub const CPU: u8 = 1 << 1;
    /// All bits that are known.
    pub const ALL: u8 = CHANNEL | CPU;
}

/// `struct dma_descriptor`: one DMA operation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Address of the first byte read, or the pattern of a fill.
    pub src_addr: u64,
    /// Address of the first byte written.
    pub dst_addr: u64,
    /// Bytes to move.
    pub length: u32,
    /// Node (host) that `src_addr` belongs to.
    pub src_node: u16,
    /// Node (host) that `dst_addr` belongs to.
    pub dst_node: u16,
    /// One of [`opcode`].
    pub opcode: u8,
    /// Bits of [`flags`].
    pub flags: u8,
    /// Must be 0.
    pub reserved: [u8; 6],
}

const _: () = assert!(core::mem::size_of::<Descriptor>() == 32);

impl Descriptor {
    /// Words of 8 bytes of a descriptor.
    pub const WORDS: usize = 4;

    /// The descriptor as it lies in memory, in words of 8 bytes.
    #[must_use]
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        let length = self.length.to_ne_bytes();
        let src = self.src_node.to_ne_bytes();
        let dst = self.dst_node.to_ne_bytes();
        let rest = self.reserved;
        [
            self.src_addr,
            self.dst_addr,
            u64::from_ne_bytes([
                length[0], length[1], length[2], length[3], src[0], src[1], dst[0], dst[1],
            ]),
            u64::from_ne_bytes([
                self.opcode,
                self.flags,
                rest[0],
                rest[1],
                rest[2],
                rest[3],
                rest[4],
                rest[5],
            ]),
        ]
    }

    /// The descriptor that lies in memory as `words`. Every pattern of bits is one; nothing is
    /// checked.
    #[must_use]
    pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
        let sizes = words[2].to_ne_bytes();
        let bytes = words[3].to_ne_bytes();
        Self {
            src_addr: words[0],
            dst_addr: words[1],
            length: u32::from_ne_bytes([sizes[0], sizes[1], sizes[2], sizes[3]]),
            src_node: u16::from_ne_bytes([sizes[4], sizes[5]]),
            dst_node: u16::from_ne_bytes([sizes[6], sizes[7]]),
            opcode: bytes[0],
            flags: bytes[1],
            reserved: [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]],
        }
    }
}
