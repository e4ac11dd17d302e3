//! The shape of `OpenAI`'s chat completions.

use serde_json::{Map, Value, json};

use crate::made::Made;
use crate::prompt::Malformed;
use crate::provider::{Answer, Exchange, Fault, Finish, Problem, Provider, Row, delta_text};

pub struct OpenAi;

/// Statuses that have words of their own. That of 429 names no time, so that only the markers for it ask for a wait.
const STATUSES: &[Row] = &[
    Row {
        status: 400,
        kind: Some("invalid_request_error"),
        code: Some("decimal_above_max_value"),
        param: Some("temperature"),
        message: "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
    },
    Row {
        status: 401,
        kind: Some("invalid_request_error"),
        code: Some("invalid_api_key"),
        param: None,
        message: "Incorrect API key provided: sk-***. You can find your API key at \
                  https://platform.openai.com/account/api-keys.",
    },
    Row {
        status: 403,
        kind: Some("request_forbidden"),
        code: Some("unsupported_country_region_territory"),
        param: None,
        message: "Country, region, or territory not supported",
    },
    Row {
        status: 404,
        kind: Some("invalid_request_error"),
        code: Some("model_not_found"),
        param: None,
        message: "The model `{model}` does not exist or you do not have access to it.",
    },
    Row { status: 408, kind: None, code: None, param: None, message: "Request timed out." },
    Row { status: 409, kind: None, code: None, param: None, message: "The resource is locked by another request." },
    Row {
        status: 413,
        kind: Some("invalid_request_error"),
        code: None,
        param: None,
        message: "The request body is larger than this endpoint accepts.",
    },
    Row {
        status: 429,
        kind: Some("requests"),
        code: Some("rate_limit_exceeded"),
        param: None,
        message: "Rate limit reached for {model} in organization org-gateway on requests per min (RPM): Limit 500, \
                  Used 500, Requested 1.",
    },
    Row { status: 500, kind: Some("server_error"), code: None, param: None, message: SERVER_ERROR },
    Row {
        status: 503,
        kind: Some("service_unavailable_error"),
        code: Some("server_is_overloaded"),
        param: None,
        message: "The engine is currently overloaded, please try again later",
    },
];

const QUOTA: Row = Row {
    status: 429,
    kind: Some("insufficient_quota"),
    code: Some("insufficient_quota"),
    param: None,
    message: "You exceeded your current quota, please check your plan and billing details.",
};

const DAILY: Row = Row {
    status: 429,
    kind: Some("requests"),
    code: Some("rate_limit_exceeded"),
    param: None,
    message: "Rate limit reached for {model} in organization org-gateway on requests per day (RPD): Limit 200, Used \
              200, Requested 1. Please try again in 7h12m0s.",
};

const CONTEXT: Row = Row {
    status: 400,
    kind: Some("invalid_request_error"),
    code: Some("context_length_exceeded"),
    param: Some("messages"),
    message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. \
              Please reduce the length of the messages.",
};

pub const SERVER_ERROR: &str = "The server had an error while processing your request. Sorry about that!";

impl Provider for OpenAi {
    fn request_id_header(&self) -> &'static str {
        "x-request-id"
    }

    fn request_id(&self, exchange: &Exchange) -> String {
        format!("req_{}", exchange.id)
    }

    fn fault(&self, problem: &Problem, exchange: &Exchange) -> Fault {
        match problem {
            Problem::Status(status) => by_status(*status, exchange),
            Problem::Quota => QUOTA.fault(exchange),
            Problem::Daily => DAILY.fault(exchange),
            Problem::Context => CONTEXT.fault(exchange),
            Problem::TooLarge => by_status(413, exchange),
            Problem::Malformed(Malformed::NotJson(detail)) => {
                invalid(format!("We could not parse the JSON body of your request: {detail}."))
            }
            Problem::Malformed(Malformed::Missing(name)) => Fault {
                code: Some("missing_required_parameter"),
                param: Some(name),
                ..invalid(format!("Missing required parameter: '{name}'."))
            },
            Problem::Test(kind, message) => Fault { kind: Some(kind), code: Some(kind), ..invalid(message.clone()) },
        }
    }

    fn error_body(&self, fault: &Fault, _: &Exchange) -> Value {
        json!({"error": {
            "message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.code,
        }})
    }

    fn answer_body(&self, answer: &Answer, exchange: &Exchange) -> Value {
        let message = json!({
            "role": "assistant", "content": answer.text(), "refusal": null, "annotations": [],
        });
        let choice = json!({
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer.finish),
        });
        let mut body = common("chat.completion", exchange);
        body.insert("choices".to_owned(), json!([choice]));
        body.insert("usage".to_owned(), usage(answer, exchange));
        Value::Object(body)
    }

    fn opening(&self, _: bool, exchange: &Exchange) -> Vec<String> {
        let delta = json!({"role": "assistant", "content": "", "refusal": null});
        vec![content_chunk(&delta, &Value::Null, exchange)]
    }

    fn ping(&self) -> &'static str {
        ": keep-alive\n\n"
    }

    fn usual_pings(&self) -> usize {
        0
    }

    fn delta(&self, index: usize, exchange: &Exchange) -> String {
        let delta = json!({"content": delta_text(index)});
        content_chunk(&delta, &Value::Null, exchange)
    }

    fn closing(&self, answer: &Answer, exchange: &Exchange) -> Vec<String> {
        let reason = json!(finish_reason(answer.finish));
        let mut frames = vec![content_chunk(&json!({}), &reason, exchange)];
        if exchange.prompt.include_usage {
            frames.push(chunk(&json!([]), usage(answer, exchange), exchange));
        }
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }

    fn made_body(&self, made: &Made, exchange: &Exchange) -> Option<Value> {
        let (message, finish) = match made {
            Made::Text(text) => (json!({"role": "assistant", "content": text, "refusal": null}), "stop"),
            Made::Call { name, arguments } => {
                let function = json!({"name": name, "arguments": arguments});
                let call = json!({"id": call_id(exchange), "type": "function", "function": function});
                (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
            }
        };
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
        let mut body = common("chat.completion", exchange);
        body.insert("choices".to_owned(), json!([choice]));
        body.insert("usage".to_owned(), usage(&MADE, exchange));
        Some(Value::Object(body))
    }

    fn made_frames(&self, made: &Made, exchange: &Exchange) -> Option<Vec<String>> {
        let (deltas, finish) = match made {
            Made::Text(text) => (halves(text).map(|half| json!({"content": half})).to_vec(), "stop"),
            Made::Call { name, arguments } => {
                let function = json!({"name": name, "arguments": ""});
                let opened = json!({"index": 0, "id": call_id(exchange), "type": "function", "function": function});
                let more = |half| json!({"index": 0, "function": {"arguments": half}});
                let [first, second] = halves(arguments).map(more);
                ([opened, first, second].map(|call| json!({"tool_calls": [call]})).to_vec(), "tool_calls")
            }
        };
        let mut frames = self.opening(true, exchange);
        frames.extend(deltas.iter().map(|delta| content_chunk(delta, &Value::Null, exchange)));
        frames.push(content_chunk(&json!({}), &json!(finish), exchange));
        frames.extend(self.closing(&MADE, exchange).into_iter().skip(1));
        Some(frames)
    }

    fn stream_error(&self) -> Value {
        let error = json!({"message": SERVER_ERROR, "type": "server_error", "param": null, "code": null});
        json!({"error": error})
    }

    fn event(&self, body: &Value) -> String {
        data(body)
    }
}

/// What an answer counts that was made to measure.
const MADE: Answer = Answer { from: 0, deltas: 5, finish: Finish::Stop };

fn call_id(exchange: &Exchange) -> String {
    format!("call_{}", exchange.id)
}

fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2).rev().find(|index| text.is_char_boundary(*index));
    let (first, second) = text.split_at(middle.unwrap_or(0));
    [first, second]
}

fn by_status(status: u16, exchange: &Exchange) -> Fault {
    if let Some(row) = STATUSES.iter().find(|row| row.status == status) {
        return row.fault(exchange);
    }
    let (kind, message) = if status < 500 {
        ("invalid_request_error", "The request was refused.")
    } else {
        ("server_error", SERVER_ERROR)
    };
    Fault { status, kind: Some(kind), ..invalid(message.to_owned()) }
}

fn invalid(message: String) -> Fault {
    Fault { status: 400, kind: Some("invalid_request_error"), code: None, param: None, message, headers: Vec::new() }
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Filtered => "content_filter",
        Finish::Truncated => "length",
    }
}

fn usage(answer: &Answer, exchange: &Exchange) -> Value {
    let (prompt, completion) = (exchange.prompt.tokens(), answer.deltas);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

fn common(object: &str, exchange: &Exchange) -> Map<String, Value> {
    let fields = [
        ("id", json!(format!("chatcmpl-{}", exchange.id))),
        ("object", json!(object)),
        ("created", json!(exchange.epoch_seconds())),
        ("model", json!(exchange.prompt.model)),
        ("service_tier", json!("default")),
        ("system_fingerprint", json!("fp_gateway")),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn content_chunk(delta: &Value, finish_reason: &Value, exchange: &Exchange) -> String {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
    chunk(&json!([choice]), Value::Null, exchange)
}

/// With `include_usage` every chunk has the field, and all but the last have null in it.
fn chunk(choices: &Value, usage: Value, exchange: &Exchange) -> String {
    let mut body = common("chat.completion.chunk", exchange);
    body.insert("choices".to_owned(), choices.clone());
    if exchange.prompt.include_usage {
        body.insert("usage".to_owned(), usage);
    }
    data(&Value::Object(body))
}

pub fn data(body: &Value) -> String {
    format!("data: {body}\n\n")
}
