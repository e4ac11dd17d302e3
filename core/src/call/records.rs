//! What a call shows of itself: its end, its receipts and lines, and what a listener hears while it runs.

use super::{Asked, Call, State, Written};
use crate::Span;
use crate::failure::Failure;
use crate::trace::{Decision, Ended, Event, Ids, Receipt};

impl Call {
    /// How the call ended, once it has.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        let State::Ended(stop) = self.state else { return None };
        Some(Ended { stop, attempts: self.attempts, target: self.target, elapsed: self.time, waited: self.waited })
    }

    /// The receipts that are closed, oldest first.
    #[must_use]
    pub fn receipts(&self) -> &[Receipt] {
        let open = matches!(self.state, State::Asking(Asked::Repeat { .. }));
        &self.receipts[..self.receipts.len() - usize::from(open)]
    }

    /// The last failure, classified.
    #[must_use]
    pub fn last_failure(&self) -> Option<&Failure> {
        self.receipts.iter().rev().find_map(|r| r.failure.as_ref())
    }

    /// What names the call in its records.
    #[must_use]
    pub fn ids(&self) -> Option<&Ids> {
        self.ids.as_deref()
    }

    /// Every line so far, masked: receipts, and the `call_ended` line once it has ended.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines_after(Written::default())
    }

    /// The lines that have come since the last time, masked: receipts, then the `call_ended` line.
    pub fn take_lines(&mut self) -> Vec<String> {
        let lines = self.lines_after(self.written);
        self.written = Written { receipts: self.receipts().len(), ended: self.ended().is_some() };
        lines
    }

    fn lines_after(&self, written: Written) -> Vec<String> {
        let none = Ids::default();
        let ids = self.ids().unwrap_or(&none);
        let fresh = &self.receipts()[written.receipts..];
        let mut lines: Vec<_> = fresh.iter().map(|r| r.to_json(ids, &self.policy, self.masks)).collect();
        if let (Some(ended), false) = (self.ended(), written.ended) {
            lines.push(ended.to_json(ids, &self.policy, self.receipts(), self.used.as_deref()));
        }
        lines
    }

    /// The events since the last time, as lines of JSON ([`Event`] has the schema); none unless the call is
    /// [`heard`](Call::heard).
    pub fn take_events(&mut self) -> Vec<String> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Tells the listener, where there is one, about the current target.
    pub(super) fn event(&mut self, name: &'static str, fill: impl FnOnce(&mut Event<'_>)) {
        self.event_on(self.target, name, fill);
    }

    pub(super) fn event_on(&mut self, target: usize, name: &'static str, fill: impl FnOnce(&mut Event<'_>)) {
        if self.events.is_none() {
            return;
        }
        let mut event = Event::named(name, self.ids.as_deref());
        event.at_ms = self.time.as_millis_rounded();
        event.attempt = self.attempts;
        event.target = &self.policy.targets[target].id;
        fill(&mut event);
        let line = event.to_json();
        self.events.get_or_insert_default().push(line);
    }

    /// Closes the receipt that the latest outcome or refusal opened.
    pub(super) fn close(&mut self, decision: Decision, reason: Option<&'static str>, delay: Option<Span>) {
        let time_left = self.time_left();
        if matches!(self.state, State::InFlight | State::Asking(_))
            && let Some(receipt) = self.receipts.last_mut()
        {
            receipt.decision = decision;
            receipt.reason = reason;
            receipt.delay = delay;
            receipt.time_left = time_left;
        }
    }
}
