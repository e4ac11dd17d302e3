//! From a behaviour to a response.

use std::fmt;
use std::time::Duration;

use hyper::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, SERVER,
};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use crate::behaviour::Behaviour as B;
use crate::body::{Body, Cue};
use crate::made::Made;
use crate::provider::{Answer, Exchange, Finish, Problem, Provider};

/// The connection ends without a response.
#[derive(Debug)]
pub struct Reset;

/// Between deltas, so that they travel one by one.
const DELTA_PAUSE: Duration = Duration::from_millis(2);
/// Between keep-alives.
const PING_PAUSE: Duration = Duration::from_millis(100);
/// Before a cut, so that what was sent has left.
const CUT_PAUSE: Duration = Duration::from_millis(20);
/// How much of an answer a content filter lets through, or a limit of tokens.
const SHORT_DELTAS: usize = 3;

/// What a request meets, once it is known which behaviour it asked for.
pub async fn respond(behaviour: &B, provider: &dyn Provider, exchange: &Exchange) -> Result<Response<Body>, Reset> {
    if let B::Slow(time) = behaviour {
        sleep(*time).await;
    }
    if let Some(problem) = problem(behaviour, exchange.prompt.stream) {
        let mut response = refuse(&problem, provider, exchange);
        add_hint(&mut response, behaviour, exchange);
        return Ok(response);
    }
    match behaviour {
        B::Reset => Err(Reset),
        B::Html => Ok(html()),
        B::Tool(number) => Ok(made(Made::call(&exchange.prompt.request, *number), provider, exchange)),
        B::Json => Ok(made(Made::json(&exchange.prompt.request), provider, exchange)),
        B::Redirect => Ok(redirect(exchange)),
        B::Cut(bytes) => Ok(cut(*bytes, provider, exchange)),
        _ => Ok(answer(&Play::of(behaviour), provider, exchange)),
    }
}

/// A refusal in the provider's shape.
pub fn refuse(problem: &Problem, provider: &dyn Provider, exchange: &Exchange) -> Response<Body> {
    let fault = provider.fault(problem, exchange);
    let body = provider.error_body(&fault, exchange);
    let mut response = with_id(json(fault.status, &body), provider, exchange);
    for (name, value) in fault.headers {
        set(&mut response, HeaderName::from_static(name), &value);
    }
    response
}

/// Any JSON response.
pub fn json(status: u16, body: &Value) -> Response<Body> {
    typed(status, "application/json", Body::whole(body.to_string()))
}

fn problem(behaviour: &B, stream: bool) -> Option<Problem> {
    match behaviour {
        B::Status(status) => Some(Problem::Status(*status)),
        B::RetryAfter(_) | B::RetryDate(_) | B::RetryMs(_) => Some(Problem::Status(429)),
        B::Quota => Some(Problem::Quota),
        B::Daily => Some(Problem::Daily),
        B::Context => Some(Problem::Context),
        sse if sse.needs_stream() && !stream => {
            let message = "a marker that starts with sse- needs \"stream\": true in the request";
            Some(Problem::Test("gateway_needs_stream", message.to_owned()))
        }
        _ => None,
    }
}

fn add_hint(response: &mut Response<Body>, behaviour: &B, exchange: &Exchange) {
    match behaviour {
        B::RetryAfter(seconds) => set(response, RETRY_AFTER, seconds),
        B::RetryMs(ms) => set(response, HeaderName::from_static("retry-after-ms"), ms),
        // Both dates come from one reading of the clock, so that they are apart by exactly what was asked for.
        B::RetryDate(seconds) => {
            let then = exchange.now + Duration::from_secs(*seconds);
            set(response, DATE, &httpdate::fmt_http_date(exchange.now));
            set(response, RETRY_AFTER, &httpdate::fmt_http_date(then));
        }
        _ => {}
    }
}

/// How a stream goes, or the plain answer that stands for it.
struct Play {
    /// So many deltas, instead of the whole answer.
    deltas: Option<usize>,
    finish: Finish,
    ending: Ending,
    /// Instead of the usual number.
    pings: Option<usize>,
    /// Before the first delta, beside the usual pause.
    first: Duration,
    pause: Duration,
}

#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Finished,
    /// The error as an event, as prose, or as JSON that is no event at all.
    Failed(Failed),
    /// The connection breaks.
    Cut,
    /// The body ends as if it were whole.
    Eof,
    Stalled,
    Idle,
    /// It starts again from the beginning, and then finishes.
    Again,
    /// There was no event at all.
    Void,
}

#[derive(Clone, Copy, PartialEq)]
enum Failed {
    Event,
    Text,
    Raw,
}

impl Play {
    const WHOLE: Self = Self {
        deltas: None,
        finish: Finish::Stop,
        ending: Ending::Finished,
        pings: None,
        first: Duration::ZERO,
        pause: DELTA_PAUSE,
    };

    fn of(behaviour: &B) -> Self {
        match *behaviour {
            B::Filter => Self { deltas: Some(SHORT_DELTAS), finish: Finish::Filtered, ..Self::WHOLE },
            B::Truncated => Self { deltas: Some(SHORT_DELTAS), finish: Finish::Truncated, ..Self::WHOLE },
            B::Empty => Self::broken(0, Ending::Finished),
            B::SseWhole(deltas) => Self { deltas: Some(deltas), pause: Duration::ZERO, ..Self::WHOLE },
            B::SseCut(deltas) => Self::broken(deltas, Ending::Cut),
            B::SseEof(deltas) => Self::broken(deltas, Ending::Eof),
            B::SseVoid => Self::broken(0, Ending::Void),
            B::SseError(deltas) => Self::broken(deltas, Ending::Failed(Failed::Event)),
            B::SseErrorText(deltas) => Self::broken(deltas, Ending::Failed(Failed::Text)),
            B::SseErrorRaw(deltas) => Self::broken(deltas, Ending::Failed(Failed::Raw)),
            B::SseAgain(deltas) => Self::broken(deltas, Ending::Again),
            B::SseStall(deltas) => Self::broken(deltas, Ending::Stalled),
            B::SseIdle(deltas) => Self::broken(deltas, Ending::Idle),
            B::SsePings(pings) => Self { pings: Some(pings), ..Self::WHOLE },
            B::SseFirst(first) => Self { first, ..Self::WHOLE },
            B::SseSlow(pause) => Self { pause, ..Self::WHOLE },
            _ => Self::WHOLE,
        }
    }

    fn broken(deltas: usize, ending: Ending) -> Self {
        Self { deltas: Some(deltas), ending, ..Self::WHOLE }
    }

    fn answer(&self, exchange: &Exchange) -> Answer {
        Answer::after(&exchange.prompt.prefill, self.deltas, self.finish)
    }

    fn cues(&self, provider: &dyn Provider, exchange: &Exchange) -> Vec<Cue> {
        if self.ending == Ending::Void {
            return Vec::new();
        }
        let answer = self.answer(exchange);
        let has_content = answer.deltas > 0 || self.ending != Ending::Finished;
        let mut cues: Vec<_> = sent(provider, provider.opening(has_content, exchange)).collect();
        for _ in 0..self.pings.unwrap_or_else(|| provider.usual_pings()) {
            if self.pings.is_some() {
                cues.push(Cue::Wait(PING_PAUSE));
            }
            cues.push(Cue::Send(provider.frame(provider.ping().to_owned())));
        }
        cues.push(Cue::Wait(self.first));
        cues.extend(self.content(answer, provider, exchange));
        match self.ending {
            Ending::Finished => cues.extend(sent(provider, provider.closing(&answer, exchange))),
            Ending::Failed(how) => cues.push(Cue::Send(provider.frame(failure(how, provider)))),
            Ending::Cut => cues.extend([Cue::Wait(CUT_PAUSE), Cue::Cut]),
            Ending::Eof | Ending::Void => {}
            Ending::Stalled => cues.push(Cue::Stall),
            Ending::Idle => cues.push(Cue::Hum(PING_PAUSE, provider.frame(provider.ping().to_owned()))),
            Ending::Again => cues.extend(Self::WHOLE.cues(provider, exchange)),
        }
        cues
    }

    fn content(&self, answer: Answer, provider: &dyn Provider, exchange: &Exchange) -> Vec<Cue> {
        let wait = || (!self.pause.is_zero()).then_some(Cue::Wait(self.pause));
        let delta = |index| Cue::Send(provider.frame(provider.delta(index, exchange)));
        answer.indices().flat_map(|index| wait().into_iter().chain([delta(index)])).collect()
    }
}

fn sent(provider: &dyn Provider, frames: Vec<String>) -> impl Iterator<Item = Cue> {
    frames.into_iter().map(|frame| Cue::Send(provider.frame(frame)))
}

fn failure(how: Failed, provider: &dyn Provider) -> String {
    match how {
        Failed::Event => provider.event(&provider.stream_error()),
        Failed::Text => "data: upstream connect error or disconnect/reset before headers\n\n".to_owned(),
        Failed::Raw => format!("{}\n\n", provider.stream_error()),
    }
}

fn answer(play: &Play, provider: &dyn Provider, exchange: &Exchange) -> Response<Body> {
    if !exchange.prompt.stream {
        let body = provider.answer_body(&play.answer(exchange), exchange);
        return with_id(json(200, &body), provider, exchange);
    }
    with_id(event_stream(play.cues(provider, exchange), provider), provider, exchange)
}

fn made(made: Result<Made, Problem>, provider: &dyn Provider, exchange: &Exchange) -> Response<Body> {
    let answered = made.and_then(|made| {
        let body = if exchange.prompt.stream {
            provider.made_frames(&made, exchange).map(|frames| event_stream(sent(provider, frames).collect(), provider))
        } else {
            provider.made_body(&made, exchange).map(|body| json(200, &body))
        };
        let message = "only chat completions call tools and answer in JSON here";
        body.ok_or_else(|| Problem::Test("gateway_needs_chat", message.to_owned()))
    });
    match answered {
        Ok(response) => with_id(response, provider, exchange),
        Err(problem) => refuse(&problem, provider, exchange),
    }
}

fn event_stream(cues: Vec<Cue>, provider: &dyn Provider) -> Response<Body> {
    let mut response = typed(200, provider.stream_type(), Body::played(cues));
    set(&mut response, CACHE_CONTROL, "no-cache");
    response
}

fn cut(bytes: usize, provider: &dyn Provider, exchange: &Exchange) -> Response<Body> {
    let whole = provider.answer_body(&Play::WHOLE.answer(exchange), exchange).to_string();
    let sent = whole.chars().take(bytes).collect::<String>().into();
    let body = Body::played(vec![Cue::Send(sent), Cue::Wait(CUT_PAUSE), Cue::Cut]);
    let mut response = typed(200, "application/json", body);
    set(&mut response, CONTENT_LENGTH, &whole.len().to_string());
    with_id(response, provider, exchange)
}

fn redirect(exchange: &Exchange) -> Response<Body> {
    let mut response = typed(307, "text/plain", Body::whole("elsewhere"));
    set(&mut response, LOCATION, &exchange.address);
    response
}

fn html() -> Response<Body> {
    const PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad \
                        Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";
    let mut response = typed(502, "text/html", Body::whole(PAGE));
    set(&mut response, SERVER, "nginx");
    response
}

fn typed(status: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    set(&mut response, CONTENT_TYPE, content_type);
    response
}

fn with_id(mut response: Response<Body>, provider: &dyn Provider, exchange: &Exchange) -> Response<Body> {
    let name = HeaderName::from_static(provider.request_id_header());
    set(&mut response, name, &provider.request_id(exchange));
    response
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the connection is reset, as its marker asks")
    }
}

impl std::error::Error for Reset {}
