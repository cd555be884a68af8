//! Memory that starts on a page, as that of the other ranks does.

const PAGE_BYTES: usize = 4096;

/// Floats, the first of them on a page.
#[derive(Debug)]
pub(crate) struct Buffer {
    all: Vec<f32>,
    start: usize,
    count: usize,
}

impl Buffer {
    /// `count` floats, all written once, so that no call pays for the first touch.
    pub fn new(count: usize) -> Self {
        let mut all = vec![0.0; count + PAGE_BYTES / size_of::<f32>()];
        let start = all.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES / size_of::<f32>());
        // Zeroes of the system are no touch yet.
        all.fill(-1.0);
        Self { all, start, count }
    }

    pub fn floats(&self) -> &[f32] {
        &self.all[self.start..][..self.count]
    }

    pub fn floats_mut(&mut self) -> &mut [f32] {
        &mut self.all[self.start..][..self.count]
    }
}
