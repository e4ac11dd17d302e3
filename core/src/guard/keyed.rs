//! Machines by key, in bounded memory.
//!
//! Keys come from policies, and so perhaps from users. A machine is only stored once it has something to remember, and
//! a map that is full forgets its less useful half: idle machines first, then those used longest ago. What is
//! forgotten starts anew, closed and full.

use crate::Span;

/// The most keys of one map.
const MOST: usize = 10_000;

/// Machines by key, in the order of their keys. A sorted list and no tree: the code of it is a fraction, and a new key
/// only moves pointers.
#[derive(Clone, Debug)]
pub(super) struct Keyed<T>(Vec<(Box<str>, Box<Entry<T>>)>);

#[derive(Clone, Debug)]
struct Entry<T> {
    used: Span,
    machine: T,
}

/// A machine that can be forgotten.
pub(super) trait Idle {
    /// Nothing would be lost by forgetting it now.
    fn is_idle(&self, now: Span) -> bool;
}

impl<T> Default for Keyed<T> {
    fn default() -> Keyed<T> {
        Keyed(Vec::new())
    }
}

impl<T: Default + Idle> Keyed<T> {
    /// Works on the machine of this key, a new one if there is none. A new one that is idle afterwards is not kept.
    pub fn with<R>(&mut self, key: &str, now: Span, work: impl FnOnce(&mut T) -> R) -> R {
        let (index, new) = self.enter(key, now);
        let machine = &mut self.0[index].1.machine;
        let result = work(machine);
        if new && machine.is_idle(now) {
            self.0.remove(index);
        } else if new {
            self.make_room(now);
        }
        result
    }

    /// Where the machine of this key is now, and whether it is new.
    fn enter(&mut self, key: &str, now: Span) -> (usize, bool) {
        match self.place(key) {
            Ok(index) => {
                self.0[index].1.used = now;
                (index, false)
            }
            Err(index) => {
                self.0.insert(index, (key.into(), Box::new(Entry { used: now, machine: T::default() })));
                (index, true)
            }
        }
    }

    /// The machine of this key, if it has anything to remember.
    pub fn get(&self, key: &str) -> Option<&T> {
        self.place(key).ok().map(|index| &self.0[index].1.machine)
    }

    /// All that are not idle, in the order of their keys.
    pub fn active(&self, now: Span) -> impl Iterator<Item = (&str, &T)> {
        let all = self.0.iter().map(|(key, entry)| (&**key, &entry.machine));
        all.filter(move |(_, machine)| !machine.is_idle(now))
    }

    /// Where the key is, or where it would be.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(held, _)| (**held).cmp(key))
    }

    fn make_room(&mut self, now: Span) {
        if self.0.len() <= MOST {
            return;
        }
        let order = self.0.iter().map(|(_, entry)| (!entry.machine.is_idle(now), entry.used)).collect();
        let mut kept = better_half(order).into_iter();
        self.0.retain(|_| kept.next() == Some(true));
    }
}

/// Which to keep of these, by whether they are busy and when they were used: all but the first `MOST / 2`.
fn better_half(order: Vec<(bool, Span)>) -> Vec<bool> {
    let mut kept = vec![true; order.len()];
    let mut by_use: Vec<_> = order.into_iter().enumerate().map(|(index, (busy, used))| (busy, used, index)).collect();
    by_use.sort_unstable();
    for (_, _, index) in by_use.into_iter().take(MOST / 2) {
        kept[index] = false;
    }
    kept
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
        assert_eq!(map.0.len(), MOST / 2 + 1);
        assert!(map.get("00000").is_some() && map.get("09999").is_none() && map.get("new").is_some());

        for i in 0..MOST / 2 {
            map.with(&format!("x{i:05}"), now, |busy| busy.0 = Span::MAX);
        }
        assert!(map.0.len() <= MOST);
        assert!(map.get("00000").is_some() && map.get("00001").is_none() && map.get("x04999").is_some());
    }
}
