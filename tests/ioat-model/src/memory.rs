//! The memory of the guest, as far as it is mapped for the device.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use stepccl_memory::{DeviceMapping, Memory as _};

/// Longest piece that is moved at once.
const PIECE: u64 = 1 << 16;

/// An address that is not mapped for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wild {
    /// The address.
    pub address: u64,
}

/// A part of a file, at an address of the device.
#[derive(Debug)]
struct Range {
    bytes: u64,
    file: Arc<DeviceMapping>,
    offset: u64,
}

/// All ranges, by their first address.
#[derive(Debug, Default)]
pub struct Memory {
    ranges: BTreeMap<u64, Range>,
    /// Files that are mapped already: with an IOMMU each page comes as a range of its own.
    files: HashMap<(u64, u64), Weak<DeviceMapping>>,
}

impl Memory {
    /// Map a part of a file at an address.
    ///
    /// # Errors
    ///
    /// The system refuses to map the file.
    pub fn map(&mut self, address: u64, bytes: u64, file: &File, offset: u64) -> io::Result<()> {
        let facts = file.metadata()?;
        let key = (facts.dev(), facts.ino());
        let known = self.files.get(&key).and_then(Weak::upgrade);
        let file = match known {
            Some(mapped) => mapped,
            None => {
                let length = usize::try_from(facts.len()).map_err(io::Error::other)?;
                let mapped = DeviceMapping::new(file, 0, length).map_err(io::Error::other)?;
                let mapped = Arc::new(mapped);
                self.files.insert(key, Arc::downgrade(&mapped));
                mapped
            }
        };
        self.ranges.insert(address, Range { bytes, file, offset });
        Ok(())
    }

    /// Unmap what was mapped in a range of addresses.
    pub fn unmap(&mut self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        let gone: Vec<_> = self.ranges.range(address..end).map(|(start, _)| *start).collect();
        for start in gone {
            self.ranges.remove(&start);
        }
    }

    /// File, offset and contiguous bytes behind an address.
    fn find(&self, address: u64) -> Result<(&DeviceMapping, u64, u64), Wild> {
        let before = self.ranges.range(..=address).next_back();
        match before {
            Some((start, range)) if address - start < range.bytes => {
                let within = address - start;
                Ok((&range.file, range.offset + within, range.bytes - within))
            }
            _ => Err(Wild { address }),
        }
    }

    /// Read bytes.
    ///
    /// # Errors
    ///
    /// [`Wild`].
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Wild> {
        let mut done = 0;
        while done < to.len() {
            let at = address.wrapping_add(done as u64);
            let (file, offset, contiguous) = self.find(at)?;
            let part = contiguous.min((to.len() - done) as u64) as usize;
            let copied = file.view().copy_out(offset as usize, &mut to[done..][..part]);
            copied.map_err(|_| Wild { address: at })?;
            done += part;
        }
        Ok(())
    }

    /// Write bytes.
    ///
    /// # Errors
    ///
    /// [`Wild`]; what came before the wild address is written.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), Wild> {
        let mut done = 0;
        while done < from.len() {
            let at = address.wrapping_add(done as u64);
            let (file, offset, contiguous) = self.find(at)?;
            let part = contiguous.min((from.len() - done) as u64) as usize;
            let copied = file.view().copy_in(offset as usize, &from[done..][..part]);
            copied.map_err(|_| Wild { address: at })?;
            done += part;
        }
        Ok(())
    }

    /// Write one word so that whoever sees it sees all that was written before.
    ///
    /// # Errors
    ///
    /// [`Wild`].
    pub fn publish(&self, address: u64, word: u64) -> Result<(), Wild> {
        let wild = Wild { address };
        let (file, offset, _) = self.find(address)?;
        let place = file.view().atomic_u64(offset as usize).map_err(|_| wild)?;
        place.store(word, Ordering::Release);
        Ok(())
    }

    /// Copy bytes.
    ///
    /// # Errors
    ///
    /// The wild address, and whether it was one to read.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), (Wild, bool)> {
        let mut buffer = vec![0; bytes.min(PIECE) as usize];
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(PIECE);
            let piece = &mut buffer[..part as usize];
            self.read(from.wrapping_add(done), piece).map_err(|wild| (wild, true))?;
            self.write(to.wrapping_add(done), piece).map_err(|wild| (wild, false))?;
            done += part;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use stepccl_memory::Segment;

    use super::*;

    /// Pages of a file at addresses in another order, as an IOMMU has them.
    fn scattered() -> (Segment, Memory) {
        let segment = Segment::create("guest", 4 * 4096).unwrap();
        let file = File::from(segment.fd().as_fd().try_clone_to_owned().unwrap());
        let mut memory = Memory::default();
        for (page, address) in [(0, 0xf000), (1, 0x10000), (2, 0x1000), (3, 0x8000)] {
            memory.map(address, 4096, &file, page * 4096).unwrap();
        }
        (segment, memory)
    }

    #[test]
    fn copies_walk_pages() {
        let (segment, memory) = scattered();
        let bytes: Vec<u8> = (0..=250).cycle().take(8192).collect();
        memory.write(0xf000, &bytes).unwrap();
        let mut found = vec![0; 8192];
        segment.view().copy_out(0, &mut found).unwrap();
        assert_eq!(found, bytes);
        memory.copy(0xf100, 0x1000, 4096).unwrap();
        segment.view().copy_out(8192, &mut found[..4096]).unwrap();
        assert_eq!(found[..4096], bytes[0x100..][..4096]);
        memory.publish(0x8008, 77).unwrap();
        assert_eq!(segment.view().read_u64(3 * 4096 + 8).unwrap(), 77);
    }

    #[test]
    fn wild_addresses_are_caught() {
        let (_segment, mut memory) = scattered();
        let read = memory.copy(0x2000, 0xf000, 8).unwrap_err();
        assert_eq!(read, (Wild { address: 0x2000 }, true));
        let write = memory.copy(0xf000, 0x1ff8, 16).unwrap_err();
        assert_eq!(write, (Wild { address: 0x2000 }, false));
        assert!(memory.read(u64::MAX - 3, &mut [0; 8]).is_err());
        memory.unmap(0x10000, 4096);
        assert_eq!(memory.read(0xfff8, &mut [0; 16]), Err(Wild { address: 0x10000 }));
    }
}
