//! The shape of Anthropic's messages.

use serde_json::{Value, json};

use crate::prompt::Malformed;
use crate::provider::{Answer, DAILY_RESET_S, Exchange, Fault, Finish, Problem, Provider, Row, delta_text};

pub struct Anthropic;

/// Statuses that have words of their own. That of 429 names no time, so that only the markers for it ask for a wait.
const STATUSES: &[Row] = &[
    row(400, "invalid_request_error", "messages: at least one message is required"),
    row(401, "authentication_error", "invalid x-api-key"),
    row(
        402,
        "billing_error",
        "There's an issue with your billing or payment information. Please check your payment details in the Console.",
    ),
    row(403, "permission_error", "Your API key does not have permission to use the specified resource."),
    row(404, "not_found_error", "model: {model}"),
    row(408, "timeout_error", "Request timed out"),
    row(409, "conflict_error", "The resource is locked by another request."),
    row(413, "request_too_large", "Request exceeds the maximum allowed number of bytes."),
    row(429, "rate_limit_error", "This request would exceed your organization's rate limit of 50 requests per minute."),
    row(500, "api_error", "Internal server error"),
    row(503, "api_error", "Service unavailable"),
    row(504, "timeout_error", "Request timed out"),
    row(529, "overloaded_error", "Overloaded"),
];

const DAILY: Row =
    row(429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later.");

const CONTEXT: Row = row(400, "invalid_request_error", "prompt is too long: 214782 tokens > 200000 maximum");

const fn row(status: u16, kind: &'static str, message: &'static str) -> Row {
    Row { status, kind: Some(kind), code: None, param: None, message }
}

impl Provider for Anthropic {
    fn request_id_header(&self) -> &'static str {
        "request-id"
    }

    fn request_id(&self, exchange: &Exchange) -> String {
        format!("req_011{}", exchange.id)
    }

    fn fault(&self, problem: &Problem, exchange: &Exchange) -> Fault {
        match problem {
            Problem::Status(status) => by_status(*status, exchange),
            Problem::Quota => by_status(402, exchange),
            Problem::Daily => Fault { headers: daily_headers(exchange), ..DAILY.fault(exchange) },
            Problem::Context => CONTEXT.fault(exchange),
            Problem::TooLarge => by_status(413, exchange),
            Problem::Malformed(Malformed::NotJson(detail)) => {
                invalid(format!("The request body is not valid JSON: {detail}"))
            }
            Problem::Malformed(Malformed::Missing(name)) => invalid(format!("{name}: Field required")),
            Problem::Test(kind, message) => Fault { kind: Some(kind), ..invalid(message.clone()) },
        }
    }

    fn error_body(&self, fault: &Fault, exchange: &Exchange) -> Value {
        json!({
            "type": "error",
            "error": {"type": fault.kind, "message": fault.message},
            "request_id": self.request_id(exchange),
        })
    }

    fn answer_body(&self, answer: &Answer, exchange: &Exchange) -> Value {
        let text = json!({"type": "text", "text": answer.text(), "citations": null});
        let content = if answer.deltas == 0 { json!([]) } else { json!([text]) };
        let ending = ending(answer.finish);
        message(&content, &ending, answer.deltas, exchange)
    }

    fn opening(&self, has_content: bool, exchange: &Exchange) -> Vec<String> {
        let ending = json!({"stop_reason": null, "stop_sequence": null, "stop_details": null});
        let message = message(&json!([]), &ending, 1, exchange);
        let mut frames = vec![event(&json!({"type": "message_start", "message": message}))];
        if has_content {
            let block = json!({"type": "text", "text": ""});
            frames.push(event(&json!({"type": "content_block_start", "index": 0, "content_block": block})));
        }
        frames
    }

    fn ping(&self) -> &'static str {
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }

    fn usual_pings(&self) -> usize {
        1
    }

    fn delta(&self, index: usize, _: &Exchange) -> String {
        let delta = json!({"type": "text_delta", "text": delta_text(index)});
        event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    }

    fn closing(&self, answer: &Answer, exchange: &Exchange) -> Vec<String> {
        let mut events = Vec::new();
        if answer.deltas > 0 {
            events.push(json!({"type": "content_block_stop", "index": 0}));
        }
        let usage = usage(answer.deltas, exchange);
        events.push(json!({"type": "message_delta", "delta": ending(answer.finish), "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(event).collect()
    }

    fn stream_error(&self) -> Value {
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        json!({"type": "error", "error": error})
    }

    fn event(&self, body: &Value) -> String {
        event(body)
    }
}

fn by_status(status: u16, exchange: &Exchange) -> Fault {
    if let Some(row) = STATUSES.iter().find(|row| row.status == status) {
        return row.fault(exchange);
    }
    let (kind, message) = if status < 500 {
        ("invalid_request_error", "The request was refused.")
    } else {
        ("api_error", "Internal server error")
    };
    row(status, kind, message).fault(exchange)
}

fn invalid(message: String) -> Fault {
    Fault { status: 400, kind: Some("invalid_request_error"), code: None, param: None, message, headers: Vec::new() }
}

/// Only this header tells a used-up allowance from an ordinary rate limit.
fn daily_headers(exchange: &Exchange) -> Vec<(&'static str, String)> {
    let reset = exchange.epoch_seconds() + DAILY_RESET_S;
    vec![
        ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
        ("anthropic-ratelimit-unified-reset", reset.to_string()),
    ]
}

fn ending(finish: Finish) -> Value {
    let (reason, details) = match finish {
        Finish::Stop => ("end_turn", Value::Null),
        Finish::Truncated => ("max_tokens", Value::Null),
        Finish::Filtered => ("refusal", json!({"type": "refusal", "category": null, "explanation": null})),
    };
    json!({"stop_reason": reason, "stop_sequence": null, "stop_details": details})
}

fn message(content: &Value, ending: &Value, output_tokens: usize, exchange: &Exchange) -> Value {
    let mut usage = usage(output_tokens, exchange);
    usage["service_tier"] = json!("standard");
    json!({
        "id": format!("msg_01{}", exchange.id),
        "type": "message",
        "role": "assistant",
        "model": exchange.prompt.model,
        "content": content,
        "stop_reason": ending["stop_reason"],
        "stop_sequence": ending["stop_sequence"],
        "stop_details": ending["stop_details"],
        "usage": usage,
    })
}

/// Even an empty answer costs a token of output.
fn usage(output_tokens: usize, exchange: &Exchange) -> Value {
    json!({
        "input_tokens": exchange.prompt.tokens(),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens.max(1),
    })
}

fn event(body: &Value) -> String {
    let name = body["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {body}\n\n")
}
