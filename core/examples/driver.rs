//! The canonical driver: the loop that turns the engine's decisions into calls, waits and records. Standard library
//! only; copy it and make it your own.
//!
//! `cargo run -p reprieve --example driver` plays three calls: one whose server refuses, throttles and then answers,
//! one that falls back, and one that is cancelled while it waits. Records go to stderr, the timelines to stdout.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use reprieve::guard::{self, Guards};
use reprieve::trace::Ids;
use reprieve::{Action, Call, Evidence, Misuse, Outcome, Policy, Span, Step, Stop};

/// How often a wait looks at `cancel`.
const LOOK: Duration = Duration::from_millis(10);

/// What all calls of a program share: one clock, one set of guards, one place for records.
pub struct Driver {
    clock: Instant,
    guards: Mutex<Guards>,
    sink: Mutex<Box<dyn Write + Send>>,
}

/// What an attempt is told. A function cannot be interrupted: it bounds its own work by `timeout`.
pub struct Attempt<'a> {
    /// Its number over the whole call, from 1.
    pub number: u32,
    /// The id of its target.
    pub target: &'a str,
    /// How long it may take.
    pub timeout: Duration,
}

/// A call that did not succeed: why, and the error of its last attempt, if one was made.
#[derive(Debug)]
pub struct GaveUp<E> {
    /// Why.
    pub stop: Stop,
    /// The caller's own error, unchanged.
    pub error: Option<E>,
}

impl Driver {
    /// A driver that writes its records to `sink`.
    pub fn new(sink: impl Write + Send + 'static) -> Driver {
        Driver { clock: Instant::now(), guards: Mutex::default(), sink: Mutex::new(Box::new(sink)) }
    }

    /// The loop. `call` is fresh and guarded; afterwards it holds the receipts. `evidence` says what is known of an
    /// error. The only locks are around guards and sink, never around `attempt`.
    ///
    /// # Errors
    /// [`GaveUp`], with the last attempt's own error.
    ///
    /// # Panics
    /// A call that is not fresh.
    pub fn drive<T, E>(
        &self,
        call: &mut Call,
        cancel: &AtomicBool,
        evidence: impl Fn(&E) -> Evidence,
        mut attempt: impl FnMut(Attempt<'_>) -> Result<T, E>,
    ) -> Result<T, GaveUp<E>> {
        let policy = call.policy().clone();
        let mut last = None;
        let mut step = self.begin(call, cancel);
        loop {
            // Misuse is a fault in this loop, never a state of the world.
            let Step { action, settles } = step.expect("begin and outcome take turns");
            guard::settle(self.now(), Some(&mut self.guards()), None, &policy, &settles);
            self.write(call);
            step = match action {
                Action::Ask(asks) => {
                    let answer = guard::answer(self.now(), Some(&mut self.guards()), None, &asks);
                    call.on_answer(self.now(), answer)
                }
                Action::Attempt { number, target, timeout, .. } => {
                    let target = policy.targets[target].id.as_str();
                    let result = attempt(Attempt { number, target, timeout: timeout.into() });
                    let outcome = match last.insert(result) {
                        Ok(_) => Outcome::success(),
                        Err(error) => Outcome::from_evidence(&evidence(error), &policy),
                    };
                    if cancel.load(Ordering::Relaxed) {
                        let _pending = call.cancel(self.now());
                    }
                    call.on_outcome(self.now(), number, outcome)
                }
                Action::Retry { after, .. } | Action::Fallback { after, .. } => {
                    self.sleep(after, cancel);
                    self.begin(call, cancel)
                }
                Action::Stop(why) => return Err(GaveUp { stop: why, error: last.and_then(Result::err) }),
                Action::Done => return Ok(last.and_then(Result::ok).expect("done means that it succeeded")),
                Action::Pending | Action::Ignored => unreachable!("one attempt at a time, and each has an outcome"),
            };
        }
    }

    fn begin(&self, call: &mut Call, cancel: &AtomicBool) -> Result<Step, Misuse> {
        if cancel.load(Ordering::Relaxed) { Ok(call.cancel(self.now())) } else { call.begin(self.now()) }
    }

    /// Time since the driver was made: any epoch will do, as long as it is monotonic.
    fn now(&self) -> Span {
        self.clock.elapsed().into()
    }

    /// Sleeps, and wakes soon after `cancel` is set.
    fn sleep(&self, after: Span, cancel: &AtomicBool) {
        let until = self.now().plus(after);
        while self.now() < until && !cancel.load(Ordering::Relaxed) {
            thread::sleep(LOOK.min(until.minus(self.now()).into()));
        }
    }

    /// A record that cannot be written never fails the call.
    fn write(&self, call: &mut Call) {
        for line in call.take_lines() {
            let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
            let _lost = writeln!(sink, "{line}");
        }
    }

    fn guards(&self) -> MutexGuard<'_, Guards> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fresh call with a random seed and trace id; the core draws no entropy.
#[must_use]
pub fn new_call(policy: &Policy, scene: &str) -> Call {
    let random = || RandomState::new().build_hasher().finish();
    let trace_id = format!("{:016x}{:016x}", random(), random());
    let ids = Ids { trace_id, scene: Some(scene.into()), ..Ids::default() };
    Call::new(policy.clone(), random()).guarded().recorded().with_ids(ids)
}

// The demonstration: what follows is no part of the driver.

/// What can go wrong in it.
#[derive(Debug)]
enum Fault {
    Io(io::Error),
    Http { status: u16, headers: Vec<(String, String)> },
}

/// What is known of a fault: the raw facts, not what they mean.
fn evidence(fault: &Fault) -> Evidence {
    match fault {
        Fault::Io(error) => Evidence {
            os_code: Some(os_code(error.kind()).into()),
            message: Some(error.to_string()),
            ..Evidence::default()
        },
        Fault::Http { status, headers } => {
            Evidence { status: Some(*status), headers: headers.clone(), ..Evidence::default() }
        }
    }
}

fn os_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ConnectionRefused => "ECONNREFUSED",
        ErrorKind::ConnectionReset => "ECONNRESET",
        ErrorKind::ConnectionAborted => "ECONNABORTED",
        ErrorKind::BrokenPipe => "EPIPE",
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "ETIMEDOUT",
        ErrorKind::HostUnreachable => "EHOSTUNREACH",
        ErrorKind::NetworkUnreachable => "ENETUNREACH",
        _ => "",
    }
}

/// A loopback port that nobody listens on: a client's own, which nobody else is given while it is connected.
fn closed_port() -> io::Result<(TcpListener, TcpStream, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let port = client.local_addr()?;
    Ok((listener, client, port))
}

fn throttled(retry_after_ms: u32) -> Fault {
    Fault::Http { status: 429, headers: vec![("retry-after-ms".into(), retry_after_ms.to_string())] }
}

/// One call for people: attempt, what happened, what was decided, how long it waits.
fn timeline(title: &str, call: &Call, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{title}")?;
    for receipt in call.receipts() {
        let number = receipt.attempt.map_or("-".into(), |n| n.to_string());
        let target = &call.policy().targets[receipt.target].id;
        let what = receipt.failure.as_ref().map_or(receipt.outcome(), |failure| failure.kind.name());
        let wait = receipt.delay.map(|delay| format!("after {} ms", delay.as_millis_rounded())).unwrap_or_default();
        let line = format!("  {number:>2}  {target:<8} {what:<12} -> {:<8} {wait}", receipt.decision.name());
        writeln!(out, "{}", line.trim_end())?;
    }
    let ended = call.ended().expect("the driver leaves when it has ended");
    let how = ended.stop.map_or("succeeded", |stop| stop.reason.says());
    writeln!(out, "  {how}; attempts: {}, in all {} ms\n", ended.attempts, ended.elapsed.as_millis_rounded())
}

/// Plays three calls and writes their timelines on `out`.
pub(crate) fn demo(driver: &Driver, out: &mut dyn Write) -> io::Result<()> {
    let policy = Policy::from_json(
        r#"{"total_timeout": "2m", "backoff": {"base": "20ms", "max": "200ms"}, "breaker": {}, "cooldown": {},
            "targets": [{"id": "primary"}, {"id": "backup"}]}"#,
    )
    .expect("a valid policy");
    let never = AtomicBool::new(false);

    let (_listener, _client, closed) = closed_port()?;
    let mut call = new_call(&policy, "demo");
    let answer = driver.drive(&mut call, &never, evidence, |attempt| match attempt.number {
        1 => TcpStream::connect_timeout(&closed, attempt.timeout).map(drop).map_err(Fault::Io),
        2 => Err(throttled(60)),
        _ => Ok(()),
    });
    timeline("refused, throttled, then fine:", &call, out)?;
    assert!(answer.is_ok(), "the third attempt is fine");

    let mut call = new_call(&policy, "demo");
    let answer = driver.drive(&mut call, &never, evidence, |attempt| match attempt.target {
        "primary" => Err(Fault::Http { status: 404, headers: Vec::new() }),
        backup => Ok(backup.to_owned()),
    });
    timeline("no such model on the primary:", &call, out)?;
    assert_eq!(answer.ok().as_deref(), Some("backup"));

    let mut call = new_call(&policy, "demo");
    let cancel = AtomicBool::new(false);
    let answer = thread::scope(|scope| {
        driver.drive(&mut call, &cancel, evidence, |_| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(50));
                cancel.store(true, Ordering::Relaxed);
            });
            Err::<(), _>(throttled(50_000))
        })
    });
    timeline("asked to wait 50 s, cancelled after 50 ms:", &call, out)?;
    assert_eq!(answer.unwrap_err().stop.reason.name(), "cancelled");
    Ok(())
}

fn main() -> io::Result<()> {
    demo(&Driver::new(io::stderr()), &mut io::stdout())
}
