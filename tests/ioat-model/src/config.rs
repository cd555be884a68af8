//! PCI configuration space: who the device is, and where its interrupts are described.

/// Bytes of the space.
pub const BYTES: usize = 256;
/// Where the table of interrupts begins in the registers.
pub const TABLE: u64 = 0x2000;
/// Where the pending bits begin.
pub const PENDING: u64 = 0x3000;

const COMMAND: usize = 0x04;
const CAPABILITY: usize = 0x40;

/// The space as the guest reads and writes it.
#[derive(Clone, Debug)]
pub struct Config([u8; BYTES]);

impl Config {
    /// A device with so many channels, each with an interrupt of its own.
    #[must_use]
    pub fn new(channels: u16) -> Self {
        let mut config = Self([0; BYTES]);
        config.put(0x00, &0x8086_u16.to_le_bytes());
        // The engine of the Skylake servers.
        config.put(0x02, &0x2021_u16.to_le_bytes());
        // Status: there is a list of capabilities.
        config.put(0x06, &0x10_u16.to_le_bytes());
        // A system peripheral.
        config.put(0x0a, &[0x80, 0x08]);
        // One range of registers, anywhere in 64 bits.
        config.put(0x10, &0x04_u32.to_le_bytes());
        config.put(0x34, &[CAPABILITY as u8]);
        // MSI-X, the only capability.
        config.put(CAPABILITY, &[0x11, 0]);
        config.put(CAPABILITY + 2, &(channels - 1).to_le_bytes());
        config.put(CAPABILITY + 4, &(TABLE as u32).to_le_bytes());
        config.put(CAPABILITY + 8, &(PENDING as u32).to_le_bytes());
        config
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.0[offset..][..bytes.len()].copy_from_slice(bytes);
    }

    /// What the guest reads; beyond the end there is nothing.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (index, byte) in (offset..).zip(data) {
            *byte = usize::try_from(index).ok().and_then(|at| self.0.get(at)).copied().unwrap_or(0);
        }
    }

    /// What the guest writes: the command word, and the control bits of MSI-X, stay.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (index, byte) in (offset..).zip(data) {
            let Ok(at) = usize::try_from(index) else { return };
            if at == COMMAND || at == COMMAND + 1 || at == CAPABILITY + 3 {
                self.0[at] = *byte;
            }
        }
    }
}

#[test]
fn only_what_may_change_changes() {
    let mut config = Config::new(2);
    let before = config.clone();
    config.write(0, &[0xff; BYTES]);
    let mut changed = Vec::new();
    for at in 0..BYTES {
        if config.0[at] != before.0[at] {
            changed.push(at);
        }
    }
    assert_eq!(changed, [4, 5, 0x43]);
    let mut beyond = [7; 4];
    config.read(BYTES as u64 - 1, &mut beyond);
    assert_eq!(beyond, [0; 4]);
}
