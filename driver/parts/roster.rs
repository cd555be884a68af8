// SPDX-License-Identifier: GPL-2.0

//! Who is under way: a table of places, so that all can be found when nothing else tells of them.

/// One place; the table is a slice of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<T> {
    /// Nobody has it; the number of the next free one.
    Free(u32),
    /// Somebody has it.
    Taken(T),
}

/// The free places of a table.
#[derive(Clone, Copy, Debug)]
pub struct Roster {
    free: u32,
}

impl Roster {
    /// A roster for a table that [`Self::place`] made.
    pub const fn new() -> Self {
        Self { free: 0 }
    }

    /// What place `index` of a new table is.
    pub const fn place<T>(index: u32) -> Place<T> {
        Place::Free(index + 1)
    }

    /// Take a place; `None` where all are taken.
    pub fn board<T: Copy>(&mut self, places: &mut [Place<T>], who: T) -> Option<u32> {
        let index = self.free;
        let place = places.get_mut(index as usize)?;
        let Place::Free(next) = *place else {
            return None;
        };
        self.free = next;
        *place = Place::Taken(who);
        Some(index)
    }

    /// Give a place back: who had it. `None` where nobody had.
    pub fn leave<T: Copy>(&mut self, places: &mut [Place<T>], index: u32) -> Option<T> {
        let place = places.get_mut(index as usize)?;
        let Place::Taken(who) = *place else {
            return None;
        };
        *place = Place::Free(self.free);
        self.free = index;
        Some(who)
    }

    /// Anybody who is under way, who leaves.
    pub fn leave_any<T: Copy>(&mut self, places: &mut [Place<T>]) -> Option<T> {
        let taken = places.iter().position(|place| matches!(place, Place::Taken(_)))?;
        self.leave(places, taken as u32)
    }
}

impl Default for Roster {
    fn default() -> Self {
        Self::new()
    }
}
