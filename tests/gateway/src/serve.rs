//! One request: routed, read, recorded, answered.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hyper::body::{Body as HttpBody, Incoming};
use hyper::header::{ALLOW, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use serde_json::json;
use tokio::sync::Notify;

use crate::anthropic::Anthropic;
use crate::bedrock::{Converse, Invoke};
use crate::behaviour::Behaviour;
use crate::body::Body;
use crate::cors;
use crate::gemini::Gemini;
use crate::marker::Marker;
use crate::openai::OpenAi;
use crate::prompt::{Form, Prompt};
use crate::provider::{Exchange, Problem, Provider};
use crate::respond::{Reset, json, refuse, respond};
use crate::responses::Responses;
use crate::stats::{Stats, Visit, fnv1a};

/// What all connections share.
pub struct Gateway {
    stats: Mutex<Stats>,
    sequence: AtomicU64,
    /// Told of each request.
    arrived: Notify,
}

const MOST_BYTES: usize = 16 << 20;

const PATHS: &[(&str, Method)] = &[
    ("/v1/chat/completions", Method::POST),
    ("/v1/responses", Method::POST),
    ("/v1/messages", Method::POST),
    ("/v1beta/models/MODEL:generateContent", Method::POST),
    ("/v1beta/models/MODEL:streamGenerateContent", Method::POST),
    ("/openai/deployments/MODEL/chat/completions", Method::POST),
    ("/model/MODEL/converse", Method::POST),
    ("/model/MODEL/converse-stream", Method::POST),
    ("/model/MODEL/invoke", Method::POST),
    ("/model/MODEL/invoke-with-response-stream", Method::POST),
    ("/any", Method::GET),
    ("/__reset", Method::POST),
    ("/__stats", Method::GET),
];

impl Gateway {
    pub fn new() -> Self {
        Self { stats: Mutex::new(Stats::new()), sequence: AtomicU64::new(1), arrived: Notify::new() }
    }

    pub async fn serve(&self, request: Request<Incoming>) -> Result<Response<Body>, Reset> {
        let at = Instant::now();
        let (head, body) = request.into_parts();
        let mut response = match (&head.method, head.uri.path()) {
            (&Method::OPTIONS, _) => cors::preflight(&head.headers),
            (_, "/any") => self.any(at, &head, body).await?,
            (&Method::POST, "/__reset") => self.reset(&head),
            (&Method::GET, "/__stats") => self.report(&head),
            (&Method::POST, path) if let Some((provider, form)) = api(path) => {
                self.chat(provider, &form, at, &head, body).await?
            }
            _ => lost(&head),
        };
        cors::open(&mut response);
        Ok(response)
    }

    async fn chat(
        &self,
        provider: &dyn Provider,
        form: &Form,
        at: Instant,
        head: &Parts,
        body: Incoming,
    ) -> Result<Response<Body>, Reset> {
        let upload = Upload::read(body).await.ok_or(Reset)?;
        let understood = upload.understand(form);
        self.play(provider, visit(at, head, &upload), head, understood).await
    }

    /// A request of whatever kind: nothing of it has to be a model's.
    async fn any(&self, at: Instant, head: &Parts, body: Incoming) -> Result<Response<Body>, Reset> {
        let upload = Upload::read(body).await.ok_or(Reset)?;
        let text = query(head, "q").unwrap_or_else(|| String::from_utf8_lossy(&upload.bytes).into_owned());
        let stream = query(head, "stream").is_some_and(|word| word == "true");
        let asked = marker(&text);
        let prompt = Prompt { stream, text, ..Prompt::default() };
        self.play(&OpenAi, visit(at, head, &upload), head, (prompt, asked)).await
    }

    /// Records a request and answers it as its marker asks.
    async fn play(
        &self,
        provider: &dyn Provider,
        visit: Visit,
        head: &Parts,
        (prompt, asked): (Prompt, Asked),
    ) -> Result<Response<Body>, Reset> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let exchange = Exchange::new(sequence, prompt, head.uri.to_string());
        let drill = drill(&head.headers);
        match asked {
            Ok(marker) => {
                let attempt = self.stats().next_attempt(&drill, &marker.name);
                let step = marker.step(attempt);
                self.record(&drill, &marker.name, Visit { played: step.name.clone(), ..visit });
                if let Behaviour::Hold(requests) = step.behaviour {
                    self.hold(&drill, requests).await;
                }
                respond(&step.behaviour, provider, &exchange).await
            }
            Err((label, problem)) => {
                self.record(&drill, label, Visit { played: label.to_owned(), ..visit });
                Ok(refuse(&problem, provider, &exchange))
            }
        }
    }

    fn record(&self, drill: &str, label: &str, visit: Visit) {
        self.stats().record(drill, label, visit);
        self.arrived.notify_waiters();
    }

    /// Until the drill has made so many requests.
    async fn hold(&self, drill: &str, requests: usize) {
        loop {
            // Made before it looks, so that no request is missed between the two.
            let arrival = self.arrived.notified();
            if self.stats().count(drill) >= requests {
                return;
            }
            arrival.await;
        }
    }

    fn reset(&self, head: &Parts) -> Response<Body> {
        let drill = asked_drill(head);
        self.stats().reset(drill.as_deref());
        json(200, &json!({"reset": drill}))
    }

    fn report(&self, head: &Parts) -> Response<Body> {
        json(200, &self.stats().report(asked_drill(head).as_deref()))
    }

    fn stats(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The provider that a path belongs to, and how its requests are written.
fn api(path: &str) -> Option<(&'static dyn Provider, Form)> {
    match path {
        "/v1/chat/completions" => Some((&OpenAi, Form::Messages)),
        "/v1/responses" => Some((&Responses, Form::Input)),
        "/v1/messages" => Some((&Anthropic, Form::Messages)),
        _ if azure(path) => Some((&OpenAi, Form::Messages)),
        _ => gemini(path).or_else(|| bedrock(path)),
    }
}

fn azure(path: &str) -> bool {
    path.strip_prefix("/openai/deployments/").is_some_and(|rest| rest.ends_with("/chat/completions"))
}

fn gemini(path: &str) -> Option<(&'static dyn Provider, Form)> {
    let rest = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
    let (model, method) = rest.split_once(':')?;
    let stream = ["generateContent", "streamGenerateContent"].iter().position(|known| *known == method)? == 1;
    Some((&Gemini, Form::Contents { model: model.to_owned(), stream }))
}

fn bedrock(path: &str) -> Option<(&'static dyn Provider, Form)> {
    let (model, operation) = path.strip_prefix("/model/")?.split_once('/')?;
    let (provider, stream): (&'static dyn Provider, bool) = match operation {
        "converse" => (&Converse, false),
        "converse-stream" => (&Converse, true),
        "invoke" => (&Invoke, false),
        "invoke-with-response-stream" => (&Invoke, true),
        _ => return None,
    };
    Some((provider, Form::Converse { model: model.to_owned(), stream }))
}

/// A body as it came, up to the limit.
struct Upload {
    bytes: Vec<u8>,
    too_large: bool,
}

/// A marker, or the word under which a request without one is recorded and what is wrong with it.
type Asked = Result<Marker, (&'static str, Problem)>;

impl Upload {
    /// Reads to the end even past the limit: an answer sent before that would be lost with the connection.
    async fn read(mut body: Incoming) -> Option<Self> {
        let mut upload = Self { bytes: Vec::new(), too_large: false };
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(data) = frame.ok()?.into_data() else {
                continue;
            };
            upload.too_large |= upload.bytes.len() + data.len() > MOST_BYTES;
            if !upload.too_large {
                upload.bytes.extend_from_slice(&data);
            }
        }
        Some(upload)
    }

    fn understand(&self, form: &Form) -> (Prompt, Asked) {
        if self.too_large {
            let asked = Err(("gateway_too_large", Problem::TooLarge));
            return (Prompt::default(), asked);
        }
        match Prompt::parse(&self.bytes, form) {
            Ok(prompt) => {
                let asked = marker(&prompt.text);
                (prompt, asked)
            }
            Err(malformed) => {
                let asked = Err(("gateway_malformed", Problem::Malformed(malformed)));
                (Prompt::default(), asked)
            }
        }
    }
}

fn marker(text: &str) -> Asked {
    Marker::of_prompt(text).map_err(|unknown| {
        let label = "gateway_unknown_marker";
        (label, Problem::Test(label, unknown.message()))
    })
}

fn visit(at: Instant, head: &Parts, upload: &Upload) -> Visit {
    Visit {
        at,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        body_hash: fnv1a(&upload.bytes),
        body_length: upload.bytes.len(),
        played: String::new(),
        client_retry_count: text(&head.headers, "x-stainless-retry-count"),
        idempotency_key: text(&head.headers, "idempotency-key"),
    }
}

fn drill(headers: &HeaderMap) -> String {
    text(headers, "x-drill-id").unwrap_or_else(|| "default".to_owned())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn asked_drill(head: &Parts) -> Option<String> {
    query(head, "drill")
}

fn query(head: &Parts, wanted: &str) -> Option<String> {
    let query = head.uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}

/// No such path, or not with this method.
fn lost(head: &Parts) -> Response<Body> {
    let path = head.uri.path();
    if let Some((_, method)) = PATHS.iter().find(|(known, _)| *known == path) {
        let message = format!("{path} takes {method}, not {}", head.method);
        let mut response = json(405, &json!({"error": {"type": "gateway_wrong_method", "message": message}}));
        if let Ok(method) = HeaderValue::from_str(method.as_str()) {
            response.headers_mut().insert(ALLOW, method);
        }
        return response;
    }
    let known: Vec<_> = PATHS.iter().map(|(path, method)| format!("{method} {path}")).collect();
    let message = format!("no such path: {path}; there are {}", known.join(", "));
    json(404, &json!({"error": {"type": "gateway_unknown_path", "message": message}}))
}
