// SPDX-License-Identifier: GPL-2.0

//! A list of a few things, without an allocation.

/// Up to `N` things, in the order in which they came.
#[derive(Clone, Copy, Debug)]
pub struct Few<T, const N: usize> {
    items: [T; N],
    count: usize,
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// None.
    pub fn new() -> Self {
        Self { items: [T::default(); N], count: 0 }
    }

    /// One more; false, and nothing done, where there is no place.
    pub fn push(&mut self, item: T) -> bool {
        let Some(place) = self.items.get_mut(self.count) else { return false };
        *place = item;
        self.count += 1;
        true
    }

    /// Those there are.
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..self.count).unwrap_or(&[])
    }

    /// Forget them.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
