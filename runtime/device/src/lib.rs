//! Submission and completion rings over the ABI of /dev/dma_device.
