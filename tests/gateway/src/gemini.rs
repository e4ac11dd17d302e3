//! The shape of Gemini's `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use crate::prompt::Malformed;
use crate::provider::{Answer, Exchange, Fault, Finish, Problem, Provider, Row, delta_text};

pub struct Gemini;

/// Statuses that have words of their own; `kind` is the canonical status of Google's errors.
const STATUSES: &[Row] = &[
    row(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    row(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
    row(403, "PERMISSION_DENIED", "Your API key was reported as leaked. Please use another API key."),
    row(404, "NOT_FOUND", "models/{model} is not found for API version v1beta."),
    row(409, "ABORTED", "The operation was aborted."),
    row(413, "INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    row(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    row(500, "INTERNAL", "An internal error has occurred. Please retry."),
    row(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    row(504, "DEADLINE_EXCEEDED", "The request timed out. Please try again."),
];

const CONTEXT: Row = row(
    400,
    "INVALID_ARGUMENT",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
);

const PER_DAY: &str = "You exceeded your current quota, please check your plan and billing details. \
                       Quota exceeded for metric: generate_content_free_tier_requests, limit: 50";

const fn row(status: u16, kind: &'static str, message: &'static str) -> Row {
    Row { status, kind: Some(kind), code: None, param: None, message }
}

impl Provider for Gemini {
    fn request_id_header(&self) -> &'static str {
        "x-gateway-request-id"
    }

    fn request_id(&self, exchange: &Exchange) -> String {
        exchange.id.clone()
    }

    fn fault(&self, problem: &Problem, exchange: &Exchange) -> Fault {
        match problem {
            Problem::Status(status) => by_status(*status, exchange),
            Problem::Quota => Fault {
                message: "Your prepayment credits are depleted. Please go to AI Studio to manage your project and \
                          billing."
                    .to_owned(),
                ..by_status(429, exchange)
            },
            Problem::Daily => Fault { code: Some(PER_DAY_ID), message: PER_DAY.to_owned(), ..by_status(429, exchange) },
            Problem::Context => CONTEXT.fault(exchange),
            Problem::TooLarge => by_status(413, exchange),
            Problem::Malformed(Malformed::NotJson(detail)) => {
                invalid(format!("Invalid JSON payload received. {detail}"))
            }
            Problem::Malformed(Malformed::Missing(name)) => {
                invalid(format!("* GenerateContentRequest.{name}: {name} is not specified"))
            }
            Problem::Test(kind, message) => invalid(format!("{kind}: {message}")),
        }
    }

    fn error_body(&self, fault: &Fault, _: &Exchange) -> Value {
        let mut error = json!({"code": fault.status, "message": fault.message, "status": fault.kind});
        if let Some(quota) = fault.code {
            error["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": quota, "quotaValue": "50"}],
            }]);
        }
        json!({"error": error})
    }

    fn answer_body(&self, answer: &Answer, exchange: &Exchange) -> Value {
        chunk(&answer.text(), Some(answer), exchange)
    }

    /// Its streams open with content.
    fn opening(&self, _: bool, _: &Exchange) -> Vec<String> {
        Vec::new()
    }

    /// It has none, and its clients fail at a comment.
    fn ping(&self) -> &'static str {
        "\n\n"
    }

    fn usual_pings(&self) -> usize {
        0
    }

    fn delta(&self, index: usize, exchange: &Exchange) -> String {
        self.event(&chunk(delta_text(index), None, exchange))
    }

    fn closing(&self, answer: &Answer, exchange: &Exchange) -> Vec<String> {
        vec![self.event(&chunk("", Some(answer), exchange))]
    }

    fn stream_error(&self) -> Value {
        json!({"error": {
            "code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE",
        }})
    }

    fn event(&self, body: &Value) -> String {
        format!("data: {body}\n\n")
    }
}

const PER_DAY_ID: &str = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";

fn by_status(status: u16, exchange: &Exchange) -> Fault {
    if let Some(row) = STATUSES.iter().find(|row| row.status == status) {
        return row.fault(exchange);
    }
    let (kind, message) = if status < 500 {
        ("FAILED_PRECONDITION", "The request was refused.")
    } else {
        ("INTERNAL", "An internal error has occurred. Please retry.")
    };
    row(status, kind, message).fault(exchange)
}

fn invalid(message: String) -> Fault {
    Fault { status: 400, kind: Some("INVALID_ARGUMENT"), code: None, param: None, message, headers: Vec::new() }
}

/// Part of an answer; the last one has how it ended, and what it cost.
fn chunk(text: &str, ended: Option<&Answer>, exchange: &Exchange) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": [{"text": text}]}});
    let mut usage = json!({"promptTokenCount": exchange.prompt.tokens()});
    if let Some(answer) = ended {
        candidate["finishReason"] = json!(match answer.finish {
            Finish::Stop => "STOP",
            Finish::Filtered => "SAFETY",
            Finish::Truncated => "MAX_TOKENS",
        });
        usage["candidatesTokenCount"] = json!(answer.deltas);
        usage["totalTokenCount"] = json!(exchange.prompt.tokens() + answer.deltas);
        if text.is_empty() && answer.deltas == 0 {
            candidate["content"] = json!({});
        }
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": exchange.prompt.model,
        "responseId": exchange.id,
    })
}
