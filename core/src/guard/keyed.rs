//! Machines by key, in bounded memory.
//!
//! Keys come from policies, and so perhaps from users. A machine is only stored once it has something to remember, and
//! a map that is full forgets its less useful half: idle machines first, then those used longest ago. What is
//! forgotten starts anew, closed and full.

use crate::Span;

/// The most keys of one map.
const MOST: usize = 10_000;

/// Machines by key, in the order of their keys. Sorted lists and no tree: the code of it is a fraction, and a new key
/// only moves pointers.
#[derive(Clone, Debug)]
pub(super) struct Keyed<T> {
    keys: Keys,
    machines: Vec<Box<T>>,
}

/// A machine that can be forgotten.
pub(super) trait Idle {
    /// Nothing would be lost by forgetting it now.
    fn is_idle(&self, now: Span) -> bool;
}

impl<T> Default for Keyed<T> {
    fn default() -> Keyed<T> {
        Keyed { keys: Keys::default(), machines: Vec::new() }
    }
}

impl<T: Default + Idle> Keyed<T> {
    /// Works on the machine of this key, a new one if there is none. A new one that is idle afterwards is not kept.
    pub fn with<R>(&mut self, key: &str, now: Span, work: impl FnOnce(&mut T) -> R) -> R {
        let (index, new) = self.keys.enter(key, now);
        if new {
            self.machines.insert(index, Box::default());
        }
        let machine = &mut self.machines[index];
        let result = work(machine);
        if new && machine.is_idle(now) {
            self.keys.0.remove(index);
            self.machines.remove(index);
        } else if new && self.machines.len() > MOST {
            self.make_room(now);
        }
        result
    }

    /// The machine of this key, if it has anything to remember.
    pub fn get(&self, key: &str) -> Option<&T> {
        self.keys.place(key).ok().map(|index| &*self.machines[index])
    }

    /// All that are not idle, in the order of their keys.
    pub fn active(&self, now: Span) -> impl Iterator<Item = (&str, &T)> {
        let all = self.keys.0.iter().zip(&self.machines).map(|((key, _), machine)| (&**key, &**machine));
        all.filter(move |(_, machine)| !machine.is_idle(now))
    }

    fn make_room(&mut self, now: Span) {
        let busy: Vec<bool> = self.machines.iter().map(|machine| !machine.is_idle(now)).collect();
        let kept = self.keys.better_half(&busy);
        keep(&mut self.machines, &kept);
    }
}

/// Keeps these in their order, and drops the others.
fn keep<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut count = 0;
    for (index, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
        list.swap(count, index);
        count += 1;
    }
    list.truncate(count);
}

/// Keys in their order, each with the time when it was last used.
#[derive(Clone, Debug, Default)]
struct Keys(Vec<(Box<str>, Span)>);

impl Keys {
    /// Where the key is, or where it would be.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(held, _)| (**held).cmp(key))
    }

    /// Where the key is from now on, and whether it is new.
    fn enter(&mut self, key: &str, now: Span) -> (usize, bool) {
        match self.place(key) {
            Ok(index) => {
                self.0[index].1 = now;
                (index, false)
            }
            Err(index) => {
                self.0.insert(index, (key.into(), now));
                (index, true)
            }
        }
    }

    /// Keeps all but `MOST / 2`: those go first that are not busy, and then those that were used longest ago. Says which
    /// were kept.
    fn better_half(&mut self, busy: &[bool]) -> Vec<bool> {
        let mut by_use: Vec<_> = (0..self.0.len()).map(|index| (busy[index], self.0[index].1, index)).collect();
        by_use.sort_unstable();
        let mut kept = vec![true; by_use.len()];
        for (_, _, index) in by_use.into_iter().take(MOST / 2) {
            kept[index] = false;
        }
        keep(&mut self.0, &kept);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::{Idle, Keyed, MOST};
    use crate::Span;

    /// Remembers until when it is busy.
    #[derive(Default)]
    struct Busy(Span);

    impl Idle for Busy {
        fn is_idle(&self, now: Span) -> bool {
            self.0 <= now
        }
    }

    #[test]
    fn an_idle_machine_is_not_stored() {
        let mut map = Keyed::<Busy>::default();
        map.with("a", Span::ZERO, |_| ());
        assert!(map.get("a").is_none());
        map.with("a", Span::ZERO, |busy| busy.0 = Span::from_secs(1));
        assert!(map.get("a").is_some());
        assert_eq!(map.active(Span::from_secs(1)).count(), 0);
    }

    #[test]
    fn a_full_map_forgets_idle_ones_first_and_then_the_oldest() {
        let mut map = Keyed::<Busy>::default();
        for i in 0..MOST as u64 {
            // The older half stays busy, the newer half is idle by the time the map is full.
            let until = if i < MOST as u64 / 2 { Span::MAX } else { Span::from_secs(20_000) };
            map.with(&format!("{i:05}"), Span::from_secs(i), |busy| busy.0 = until);
        }
        let now = Span::from_secs(20_000);
        map.with("00000", now.plus(Span::from_secs(1)), |_| ());
        map.with("new", now, |busy| busy.0 = Span::MAX);
        assert_eq!(map.machines.len(), MOST / 2 + 1);
        assert!(map.get("00000").is_some() && map.get("09999").is_none() && map.get("new").is_some());

        for i in 0..MOST / 2 {
            map.with(&format!("x{i:05}"), now, |busy| busy.0 = Span::MAX);
        }
        assert!(map.machines.len() <= MOST);
        assert!(map.get("00000").is_some() && map.get("00001").is_none() && map.get("x04999").is_some());
    }
}
