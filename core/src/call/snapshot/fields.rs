//! What a snapshot is made of: one list of the fields, gone through when it is written and when it is read.

use super::VERSION;
use crate::Span;
use crate::action::{Disposition, RetryReason, Stop, StopReason};
use crate::call::hedge::{Hedging, Sibling};
use crate::call::{Asked, Call, OnTarget, State, Written};
use crate::failure::Kind;
use crate::guard::RefusedBy;
use crate::json::at::At;
use crate::json::form::{self, Form, Record, Value};
use crate::json::{self, Fields, Items};
use crate::trace::{Decision, Masks, Receipt};

/// A call, and what its snapshot says beside it.
pub(super) struct Snapshot {
    pub call: Call,
    /// The wall time at which it was written, in milliseconds since 1970.
    pub wall_ms: u64,
    /// The checksum of its text with a checksum of zero.
    pub check: u64,
}

impl Snapshot {
    /// The text with this checksum.
    pub fn text(&mut self, check: u64) -> String {
        self.check = check;
        json::object(|out| form::write(out, self))
    }
}

impl Record for Snapshot {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        let Snapshot { call, wall_ms, check } = self;
        form.derived("version", &mut |out| out.count("version", VERSION));
        form.field("check", check);
        form.field("wall_ms", wall_ms);
        // It is read before, so that its errors are its own.
        form.derived("policy", &mut |out| out.json("policy", &call.policy.to_json()));
        form.field("seed", &mut call.seed);
        form.field("state", &mut call.state);
        form.field("time", &mut call.time);
        form.field("deadline", &mut call.deadline);
        form.field("cancelled", &mut call.cancelled);
        form.field("recorded", &mut call.recorded);
        form.field("cooled", &mut call.cooled);
        form.field("attempts", &mut call.attempts);
        form.field("waited", &mut call.waited);
        form.field("target", &mut call.target);
        form.field("on_target", &mut call.on_target);
        form.field("spoken", &mut call.spoken);
        form.field("returns", &mut call.returns);
        form.field("began", &mut call.began);
        form.field("first_item", &mut call.first_item);
        let mut siblings = call.siblings().to_vec();
        form.field("siblings", &mut siblings);
        if form.reads() {
            call.carried = call.time;
            call.hedging = Hedging::of(siblings);
        }
        form.field("receipts", &mut call.receipts);
        form.field("written", &mut call.written);
        form.field("used", &mut call.used);
        form.field("ids", &mut call.ids);
        form.field("unmasked", &mut call.masks);
    }
}

impl Record for OnTarget {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        form.field("attempts", &mut self.attempts);
        if self.repaired > 0 || !form.writes() {
            form.field("repaired", &mut self.repaired);
        }
        form.field("kinds", &mut self.kinds);
        form.field("previous", &mut self.previous);
    }
}

impl Record for Receipt {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        form.field("attempt", &mut self.attempt);
        form.field("retry_count", &mut self.retry_count);
        form.field("target", &mut self.target);
        form.field("started", &mut self.started);
        form.field("ended", &mut self.ended);
        form.field("first_item", &mut self.first_item);
        form.field("delivered", &mut self.delivered);
        form.field("failure", &mut self.failure);
        form.field("refused_by", &mut self.refused_by);
        form.field("decision", &mut self.decision);
        form.field("reason", &mut self.reason);
        form.field("backoff", &mut self.backoff);
        form.field("delay", &mut self.delay);
        form.field("time_left", &mut self.time_left);
        form.field("budget", &mut self.budget);
        form.field("breaker", &mut self.breaker);
        form.field("guard_store", &mut self.guard_store);
        form.field("usage", &mut self.usage);
    }
}

/// How many ended with each kind, by its name.
impl Value for [u16; Kind::COUNT] {
    fn read(&mut self, at: &At<'_>) {
        for (name, at) in at.entries() {
            match Kind::from_name(name) {
                Some(kind) => self[kind as usize] = u16::try_from(at.count(1, u16::MAX.into())).unwrap_or(u16::MAX),
                None => at.refuse("no such kind"),
            }
        }
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.object(name, |out| {
            for kind in Kind::all().filter(|kind| self[*kind as usize] > 0) {
                out.count(kind.name(), u32::from(self[kind as usize]));
            }
        });
    }
}

impl Value for Vec<Receipt> {
    fn read(&mut self, at: &At<'_>) {
        *self = at.items(|at| {
            let mut receipt = Receipt::default();
            receipt.read(at);
            receipt
        });
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.list(name, |out| {
            for receipt in self.iter_mut() {
                out.object(|out| form::write(out, receipt));
            }
        });
    }
}

/// When each target may be back.
impl Value for Vec<(usize, Span)> {
    fn read(&mut self, at: &At<'_>) {
        *self = at.items(|at| {
            let (target, moment) = pair(at);
            (usize::try_from(target).unwrap_or(usize::MAX), Span::from_nanos(moment))
        });
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.list(name, |out| {
            for (target, moment) in self.iter() {
                write_pair(out, *target as u64, moment.as_nanos());
            }
        });
    }
}

impl Value for Vec<Sibling> {
    fn read(&mut self, at: &At<'_>) {
        *self = at.items(|at| {
            let (number, began) = pair(at);
            Sibling { number: u32::try_from(number).unwrap_or(u32::MAX), began: Span::from_nanos(began), budget: None }
        });
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.list(name, |out| {
            for one in self.iter() {
                write_pair(out, one.number.into(), one.began.as_nanos());
            }
        });
    }
}

/// A retry budget before and after.
impl Value for (u64, u64) {
    fn read(&mut self, at: &At<'_>) {
        *self = pair(at);
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.list(name, |out| [self.0, self.1].into_iter().for_each(|number| out.number(number)));
    }
}

fn pair(at: &At<'_>) -> (u64, u64) {
    let mut numbers = at.list(2, 2).map(|at| at.big());
    numbers.next().zip(numbers.next()).unwrap_or_default()
}

fn write_pair(out: &mut Items<'_>, first: u64, second: u64) {
    out.list(|out| [first, second].into_iter().for_each(|number| out.number(number)));
}

impl Value for Written {
    fn read(&mut self, at: &At<'_>) {
        let mut parts = at.list(2, 2);
        if let Some((receipts, ended)) = parts.next().zip(parts.next()) {
            self.receipts.read(&receipts);
            self.ended.read(&ended);
        }
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.list(name, |out| {
            out.number(self.receipts as u64);
            out.flag(self.ended);
        });
    }
}

impl Value for Masks {
    fn read(&mut self, at: &At<'_>) {
        match Masks::without(at.items(At::words)) {
            Ok(masks) => *self = masks,
            Err(unknown) => at.refuse(&unknown.text()),
        }
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.list(name, |out| self.off().for_each(|name| out.text(name)));
    }
}

impl Value for Option<RefusedBy> {
    fn read(&mut self, at: &At<'_>) {
        *self = named(at, |name| RefusedBy::from_reason(StopReason::from_name(name)?));
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.text(name, self.map(|by| by.reason().name()));
    }
}

impl Value for Decision {
    fn read(&mut self, at: &At<'_>) {
        *self = named(at, Decision::from_name).unwrap_or_default();
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.text(name, self.name());
    }
}

/// A reason, a breaker's state or a guard store.
impl Value for Option<&'static str> {
    fn read(&mut self, at: &At<'_>) {
        *self = named(at, a_reason);
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.text(name, *self);
    }
}

impl Value for State {
    fn read(&mut self, at: &At<'_>) {
        *self = state(at);
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        write_state(out, name, *self);
    }
}

fn state(at: &At<'_>) -> State {
    if at.value.as_map().is_none() {
        return at.choice(&[("ready", State::Ready), ("in_flight", State::InFlight), ("done", State::Ended(None))]);
    }
    let fields = at.object(&["asking_to_repeat", "waiting", "stopped"]);
    if let Some(asked) = fields.read("asking_to_repeat", |at| asked(at)) {
        return State::Asking(asked);
    }
    if let Some(until) = fields.read("waiting", |at| at.object(&["until"]).need("until", At::nanos)) {
        return State::Waiting(until);
    }
    State::Ended(Some(fields.need("stopped", |at| {
        let fields = at.object(&["reason", "human", "resume_in"]);
        let human = fields.need("human", At::flag);
        Stop {
            reason: fields.need("reason", |at| named(at, StopReason::from_name)).unwrap_or(StopReason::Cancelled),
            disposition: if human { Disposition::Human } else { Disposition::Failed },
            resume_in: fields.maybe("resume_in", At::nanos),
        }
    })))
}

/// The kind that is repeated is that of the last receipt.
fn asked(at: &At<'_>) -> Asked {
    let fields = at.object(&["delay", "repair"]);
    let repair = fields.maybe("repair", At::flag).unwrap_or(false);
    let reason = if repair { RetryReason::Repair } else { RetryReason::Kind(Kind::Unknown) };
    Asked::Repeat { delay: fields.need("delay", At::nanos), reason }
}

fn write_state(out: &mut Fields<'_>, name: &str, state: State) {
    let word = match state {
        State::Ready | State::Asking(Asked::Admit) => "ready",
        State::InFlight | State::Asking(Asked::Hedge) => "in_flight",
        State::Ended(None) => "done",
        State::Asking(Asked::Repeat { delay, reason }) => {
            return out.object(name, |out| {
                out.object("asking_to_repeat", |out| {
                    out.number("delay", delay.as_nanos());
                    if reason == RetryReason::Repair {
                        out.flag("repair", true);
                    }
                });
            });
        }
        State::Waiting(until) => {
            return out.object(name, |out| out.object("waiting", |out| out.number("until", until.as_nanos())));
        }
        State::Ended(Some(Stop { reason, disposition, resume_in })) => {
            return out.object(name, |out| {
                out.object("stopped", |out| {
                    out.text("reason", reason.name());
                    out.flag("human", disposition == Disposition::Human);
                    out.number("resume_in", resume_in.map(Span::as_nanos));
                });
            });
        }
    };
    out.text(name, word);
}

fn named<T>(at: &At<'_>, find: fn(&str) -> Option<T>) -> Option<T> {
    at.value.as_str().and_then(find).or_else(|| at.refuse("a name that this version knows"))
}

/// The static name behind a reason, a breaker's state or a guard store that a receipt may carry.
fn a_reason(name: &str) -> Option<&'static str> {
    const OTHERS: [&str; 7] = ["cooling_down", "too_early", "repair", "closed", "half_open", "open", "local"];
    let stop = StopReason::from_name(name).map(StopReason::name);
    let kind = Kind::from_name(name).map(Kind::name);
    stop.or(kind).or_else(|| OTHERS.into_iter().find(|other| *other == name))
}
