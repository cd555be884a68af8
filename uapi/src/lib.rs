//! The kernel ABI of /dev/dma_device, mirrored from include/dma_engine.h.
