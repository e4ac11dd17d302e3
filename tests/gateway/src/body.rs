//! The bodies of responses: whole, or played frame by frame.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// A response's body.
pub enum Body {
    Whole(Option<Bytes>),
    Played(Player),
}

/// A step of a played body.
pub enum Cue {
    Send(Bytes),
    Wait(Duration),
    /// A pause and this, for ever.
    Hum(Duration, Bytes),
    /// Nothing more, and no end: only the reader can leave.
    Stall,
    /// The connection ends in the middle of the body.
    Cut,
}

/// Plays cues, at the pace of its reader.
pub struct Player {
    cues: VecDeque<Cue>,
    pause: Option<Pin<Box<Sleep>>>,
}

/// The error that makes hyper drop a connection within a body.
#[derive(Debug)]
pub struct Cut;

impl Body {
    pub fn whole(content: impl Into<Bytes>) -> Self {
        Self::Whole(Some(content.into()))
    }

    pub fn played(cues: Vec<Cue>) -> Self {
        Self::Played(Player { cues: cues.into(), pause: None })
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|all| Ok(Frame::data(all)))),
            Self::Played(player) => player.poll_next(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(length as u64)
            }
            Self::Played(_) => SizeHint::default(),
        }
    }
}

impl Player {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match self.cues.pop_front() {
                None => return Poll::Ready(None),
                Some(Cue::Send(frame)) => {
                    return Poll::Ready(Some(Ok(Frame::data(frame))));
                }
                Some(Cue::Wait(time)) => self.pause = Some(Box::pin(sleep(time))),
                Some(Cue::Hum(time, frame)) => {
                    self.pause = Some(Box::pin(sleep(time)));
                    self.cues.push_front(Cue::Hum(time, frame.clone()));
                    self.cues.push_front(Cue::Send(frame));
                }
                Some(Cue::Cut) => return Poll::Ready(Some(Err(Cut))),
                Some(Cue::Stall) => {
                    self.cues.push_front(Cue::Stall);
                    return Poll::Pending;
                }
            }
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the stream is cut, as its marker asks")
    }
}

impl std::error::Error for Cut {}
