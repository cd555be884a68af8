//! A set of processors, as the kernel writes it.

use std::fmt;

/// No machine has more processors; a list that names a higher one is no list.
const MOST: u32 = 1 << 16;

/// Processors by number, such as `0-3,8-11`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// First and last of each run, in order, with gaps between.
    runs: Vec<(u32, u32)>,
}

impl Cpus {
    /// The set that `list` names: numbers and ranges with commas between, in any order. `None`
    /// where it is none, or names a number beyond 65,535.
    #[must_use]
    pub fn parse(list: &str) -> Option<Self> {
        let mut runs = Vec::new();
        for part in list.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            runs.push((first, last));
        }
        runs.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (first, last) in runs {
            match joined.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        Some(Self { runs: joined })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.runs.iter().map(|(first, last)| (last - first) as usize + 1).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether `cpu` is one of them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.runs.iter().any(|(first, last)| (*first..=*last).contains(&cpu))
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number < MOST)
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.runs.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read() {
        for (list, shown, count) in [
            ("0-1\n", "0-1", 2),
            ("", "", 0),
            ("0-3,8-11", "0-3,8-11", 8),
            ("5,1-2,3", "1-3,5", 4),
            ("7", "7", 1),
        ] {
            let cpus = Cpus::parse(list).unwrap();
            assert_eq!((cpus.to_string().as_str(), cpus.count()), (shown, count), "{list}");
            assert_eq!(cpus.is_empty(), count == 0);
        }
    }

    #[test]
    fn what_is_no_list_is_none() {
        for list in ["x", "-1", "3-1", "0-4294967295", "0-99999999999999999999", "1--2", "0x3"] {
            assert_eq!(Cpus::parse(list), None, "{list}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_shown_is_read_again(numbers in proptest::collection::btree_set(0_u32..200, 0..40)) {
            let list: Vec<_> = numbers.iter().map(u32::to_string).collect();
            let cpus = Cpus::parse(&list.join(",")).unwrap();
            prop_assert_eq!(cpus.count(), numbers.len());
            prop_assert_eq!(Cpus::parse(&cpus.to_string()), Some(cpus.clone()));
            for cpu in 0..200 {
                prop_assert_eq!(cpus.contains(cpu), numbers.contains(&cpu));
            }
        }
    }
}
