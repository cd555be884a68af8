//! What QEMU asks of the device, over vfio-user.

use std::fs::File;
use std::io;
use std::sync::{Arc, PoisonError};

use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_INFO_NORESIZE, VFIO_IRQ_SET_ACTION_TRIGGER,
    VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS, VFIO_PCI_NUM_REGIONS,
    VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE, vfio_region_info,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, ServerBackend, ServerRegion};

use crate::config::{self, Config, TABLE};
use crate::registers;
use crate::worker::{self, Shared};

/// Bytes of the table of interrupts, which QEMU reads and writes here and acts on itself.
const TABLE_BYTES: usize = 0x1000;

/// The device behind one connection.
#[derive(Debug)]
pub struct Device {
    shared: Arc<Shared>,
    config: Config,
    table: Vec<u8>,
}

impl Device {
    /// A device whose channels wait for work.
    #[must_use]
    pub fn new(channels: u16) -> Self {
        let shared = Arc::new(Shared::new(channels));
        for channel in 0..channels.into() {
            worker::start(&shared, channel);
        }
        Self { shared, config: Config::new(channels), table: vec![0; TABLE_BYTES] }
    }

    /// What its threads share.
    #[must_use]
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn in_table(&mut self, offset: u64, bytes: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(offset.checked_sub(TABLE)?).ok()?;
        self.table.get_mut(start..start.checked_add(bytes)?)
    }
}

/// The regions: configuration and one range of registers.
#[must_use]
pub fn regions() -> Vec<ServerRegion> {
    let region = |index| {
        let size = match index {
            VFIO_PCI_CONFIG_REGION_INDEX => config::BYTES as u64,
            0 => registers::BYTES,
            _ => 0,
        };
        let flags =
            if size == 0 { 0 } else { VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE };
        let argsz = size_of::<vfio_region_info>() as u32;
        let region_info = vfio_region_info { argsz, index, size, flags, ..Default::default() };
        ServerRegion { region_info, sparse_areas: vec![], mmap_fd: None }
    };
    (0..VFIO_PCI_NUM_REGIONS).map(region).collect()
}

/// The interrupts: MSI-X, one a channel.
#[must_use]
pub fn interrupts(channels: u16) -> Vec<IrqInfo> {
    let interrupt = |index| match index {
        VFIO_PCI_MSIX_IRQ_INDEX => IrqInfo {
            index,
            count: channels.into(),
            flags: VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE,
        },
        _ => IrqInfo { index, count: 0, flags: 0 },
    };
    (0..VFIO_PCI_NUM_IRQS).map(interrupt).collect()
}

impl ServerBackend for Device {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        if region == VFIO_PCI_CONFIG_REGION_INDEX {
            self.config.read(offset, data);
        } else if let Some(table) = self.in_table(offset, data.len()) {
            data.copy_from_slice(table);
        } else {
            let registers = self.shared.registers.lock().unwrap_or_else(PoisonError::into_inner);
            registers.read(offset, data);
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        if region == VFIO_PCI_CONFIG_REGION_INDEX {
            self.config.write(offset, data);
        } else if let Some(table) = self.in_table(offset, data.len()) {
            table.copy_from_slice(data);
        } else {
            let mut registers =
                self.shared.registers.lock().unwrap_or_else(PoisonError::into_inner);
            if registers.write(offset, data).is_some() {
                self.shared.work.notify_all();
            }
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        _flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<File>,
    ) -> io::Result<()> {
        // Memory without a file is that of another device, which this one does not reach.
        let Some(file) = fd else { return Ok(()) };
        let mut memory = self.shared.memory.write().unwrap_or_else(PoisonError::into_inner);
        memory.map(address, size, &file, offset)
    }

    fn dma_unmap(&mut self, _flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        let mut memory = self.shared.memory.write().unwrap_or_else(PoisonError::into_inner);
        memory.unmap(address, size);
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.shared.registers.lock().unwrap_or_else(PoisonError::into_inner).reset();
        self.shared.work.notify_all();
        Ok(())
    }

    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        start: u32,
        _count: u32,
        fds: Vec<File>,
    ) -> io::Result<()> {
        if index != VFIO_PCI_MSIX_IRQ_INDEX || flags & VFIO_IRQ_SET_ACTION_TRIGGER == 0 {
            return Ok(());
        }
        let mut interrupts = self.shared.interrupts.lock().unwrap_or_else(PoisonError::into_inner);
        if fds.is_empty() {
            interrupts.fill(None);
        }
        for (place, file) in interrupts.iter_mut().skip(start as usize).zip(fds) {
            *place = Some(Arc::new(file));
        }
        Ok(())
    }
}
