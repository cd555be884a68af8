//! Collective communication on DMA engines: communicators, executor, work.
