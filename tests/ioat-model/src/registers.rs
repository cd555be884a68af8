//! The registers of the device: a page of its own, then 128 bytes a channel.

use crate::channel::Channel;

/// Bytes of the range, tables of interrupts included.
pub const BYTES: u64 = 0x4000;
const EACH: u64 = 0x80;
/// Largest copy of one descriptor, as a power of two.
const LONGEST_LOG: u8 = 20;
/// Version 3.4 of the interface.
const VERSION: u8 = 0x34;

/// Registers of the whole device.
#[derive(Clone, Debug)]
pub struct Registers {
    /// Its channels.
    pub channels: Vec<Channel>,
    interrupt_control: u8,
}

impl Registers {
    /// So many channels, none started.
    #[must_use]
    pub fn new(channels: u16) -> Self {
        Self { channels: vec![Channel::default(); channels.into()], interrupt_control: 0 }
    }

    /// As after power-up.
    pub fn reset(&mut self) {
        self.interrupt_control = 0;
        for channel in &mut self.channels {
            channel.reset();
        }
    }

    /// Whether interrupts may be sent at all.
    #[must_use]
    pub const fn interrupts(&self) -> bool {
        self.interrupt_control & 1 != 0
    }

    /// What the guest reads.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (at, byte) in (offset..).zip(data) {
            *byte = (self.word(at & !7) >> (8 * (at & 7))) as u8;
        }
    }

    /// Eight bytes at a multiple of 8.
    fn word(&self, offset: u64) -> u64 {
        let Some((channel, within)) = self.channel_at(offset) else {
            return match offset {
                0 => u64::from_le_bytes([
                    self.channels.len() as u8,
                    LONGEST_LOG,
                    0,
                    self.interrupt_control,
                    0,
                    0,
                    0,
                    0,
                ]),
                8 => VERSION.into(),
                _ => 0,
            };
        };
        let channel = &self.channels[channel];
        match within {
            // Control, compatibility with version 2, command (nothing is pending), count.
            0x00 => u64::from(channel.control) | 2 << 16 | u64::from(channel.issued()) << 48,
            0x08 => channel.status(),
            0x10 => channel.chain,
            0x18 => channel.completion,
            0x28 => u64::from(channel.error) | u64::from(channel.error_mask) << 32,
            0x30 => channel.dca.into(),
            _ => 0,
        }
    }

    fn channel_at(&self, offset: u64) -> Option<(usize, u64)> {
        let index = usize::try_from((offset / EACH).checked_sub(1)?).ok()?;
        (index < self.channels.len()).then_some((index, offset % EACH))
    }

    /// What the guest writes; the channel that may have work now.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Option<usize> {
        // Drivers write 64 bits as two halves; QEMU may join them.
        if data.len() == 8 {
            let first = self.write(offset, &data[..4]);
            return self.write(offset + 4, &data[4..]).or(first);
        }
        let mut bytes = [0; 4];
        bytes.get_mut(..data.len())?.copy_from_slice(data);
        let value = u32::from_le_bytes(bytes);
        let Some((index, within)) = self.channel_at(offset) else {
            if offset == 3 {
                self.interrupt_control = value as u8;
            }
            return None;
        };
        let channel = &mut self.channels[index];
        let low = |word: u64| word & !0xffff_ffff | u64::from(value);
        let high = |word: u64| word & 0xffff_ffff | u64::from(value) << 32;
        match within {
            0x00 => channel.control = value as u16,
            0x04 if value & 0x20 != 0 => channel.reset(),
            0x04 if value & 0x04 != 0 => channel.suspend(),
            0x06 => channel.issue(value as u16),
            0x10 => channel.chain = low(channel.chain),
            0x14 => {
                channel.chain = high(channel.chain);
                channel.begin_chain();
            }
            0x18 => channel.completion = low(channel.completion),
            0x1c => channel.completion = high(channel.completion),
            // Ones clear.
            0x28 => channel.error &= !value,
            0x2c => channel.error_mask = value,
            0x30 => channel.dca = value,
            _ => {}
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(registers: &Registers, offset: u64, bytes: usize) -> u64 {
        let mut data = [0; 8];
        registers.read(offset, &mut data[..bytes]);
        u64::from_le_bytes(data)
    }

    #[test]
    fn the_device_says_what_it_is() {
        let registers = Registers::new(2);
        assert_eq!(read(&registers, 0, 1), 2);
        assert_eq!(read(&registers, 1, 1), 20);
        assert_eq!(read(&registers, 8, 1), 0x34);
        assert_eq!(read(&registers, 0x82, 2), 2);
        assert_eq!(read(&registers, 0x88, 4), 3, "halted");
        assert_eq!(read(&registers, 0x180, 8), 0, "there is no third channel");
    }

    #[test]
    fn halves_and_wholes_are_the_same() {
        let address = 0x1_2345_6780_u64;
        let (mut halves, mut whole) = (Registers::new(2), Registers::new(2));
        halves.write(0x110, &address.to_le_bytes()[..4]);
        halves.write(0x114, &address.to_le_bytes()[4..]);
        assert_eq!(whole.write(0x110, &address.to_le_bytes()), Some(1));
        for registers in [&halves, &whole] {
            assert_eq!(read(registers, 0x110, 8), address);
            assert_eq!(read(registers, 0x114, 4), 1);
        }
        whole.write(0x106, &7_u16.to_le_bytes());
        assert_eq!(whole.channels[1].start(), Some((address, 0)));
        assert_eq!(read(&whole, 0x106, 2), 7);
    }

    #[test]
    fn errors_are_cleared_by_ones() {
        let mut registers = Registers::new(1);
        registers.channels[0].error = 0x300;
        registers.write(0xa8, &0x100_u32.to_le_bytes());
        assert_eq!(read(&registers, 0xa8, 4), 0x200);
        registers.write(0x84, &[0x20]);
        assert_eq!(read(&registers, 0xa8, 4), 0);
    }
}
