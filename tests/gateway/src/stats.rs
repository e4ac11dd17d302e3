//! What was asked of the gateway: the counters that lists advance by, and the record that tests check.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

/// Every drill since the start, or since it was last forgotten.
pub struct Stats {
    started: Instant,
    drills: BTreeMap<String, Drill>,
}

/// The visits of a drill, by the marker (or the gateway's own word for a request that has none).
type Drill = BTreeMap<String, Vec<Visit>>;

/// One request, recorded when its body had arrived; its time is that of its head.
pub struct Visit {
    pub at: Instant,
    pub method: String,
    pub path: String,
    pub body_hash: u64,
    pub body_length: usize,
    /// The entry of the marker that was played.
    pub played: String,
    /// `x-stainless-retry-count`: above zero, a client's own retries are on.
    pub client_retry_count: Option<String>,
    pub idempotency_key: Option<String>,
}

impl Stats {
    pub fn new() -> Self {
        Self { started: Instant::now(), drills: BTreeMap::new() }
    }

    /// The number that the next visit of this drill and marker has, counting from 1.
    pub fn next_attempt(&self, drill: &str, behaviour: &str) -> u64 {
        let visits = self.drills.get(drill).and_then(|behaviours| behaviours.get(behaviour));
        visits.map_or(0, Vec::len) as u64 + 1
    }

    /// How many visits a drill has made.
    pub fn count(&self, drill: &str) -> usize {
        self.drills.get(drill).map_or(0, |behaviours| behaviours.values().map(Vec::len).sum())
    }

    pub fn record(&mut self, drill: &str, behaviour: &str, visit: Visit) {
        self.drills.entry(drill.to_owned()).or_default().entry(behaviour.to_owned()).or_default().push(visit);
    }

    /// Forgets one drill, or all.
    pub fn reset(&mut self, drill: Option<&str>) {
        match drill {
            Some(drill) => drop(self.drills.remove(drill)),
            None => self.drills.clear(),
        }
    }

    /// All of it as JSON, or one drill's part.
    pub fn report(&self, only: Option<&str>) -> Value {
        let drills: serde_json::Map<_, _> = self
            .drills
            .iter()
            .filter(|(id, _)| only.is_none_or(|only| only == *id))
            .map(|(id, behaviours)| (id.clone(), self.drill(behaviours)))
            .collect();
        json!({"now_ms": self.ms(Instant::now()), "drills": drills})
    }

    fn drill(&self, behaviours: &Drill) -> Value {
        let count: usize = behaviours.values().map(Vec::len).sum();
        let behaviours: serde_json::Map<_, _> = behaviours
            .iter()
            .map(|(name, visits)| {
                let requests: Vec<_> = (1..).zip(visits).map(|(attempt, visit)| self.visit(attempt, visit)).collect();
                (name.clone(), json!({"count": visits.len(), "requests": requests}))
            })
            .collect();
        json!({"count": count, "behaviours": behaviours})
    }

    fn visit(&self, attempt: u64, visit: &Visit) -> Value {
        json!({
            "attempt": attempt,
            "at_ms": self.ms(visit.at),
            "method": visit.method,
            "path": visit.path,
            "played": visit.played,
            "body_hash": format!("{:016x}", visit.body_hash),
            "body_length": visit.body_length,
            "x-stainless-retry-count": visit.client_retry_count,
            "idempotency-key": visit.idempotency_key,
        })
    }

    /// Milliseconds since the start, to the microsecond.
    fn ms(&self, at: Instant) -> f64 {
        let since = at.saturating_duration_since(self.started);
        (since.as_secs_f64() * 1e6).round() / 1e3
    }
}

/// FNV-1a, 64 bits: enough to tell whether two bodies are the same.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_published_hashes() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
