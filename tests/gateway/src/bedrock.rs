//! The shape of Amazon Bedrock's `Converse` and `ConverseStream`, and of `InvokeModel` for Anthropic's models.

use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::anthropic::Anthropic;
use crate::prompt::Malformed;
use crate::provider::{Answer, Exchange, Fault, Finish, Problem, Provider, Row, delta_text};

/// `Converse`; its streams are messages in the binary encoding of AWS.
pub struct Converse;

/// `InvokeModel`: Bedrock's errors around the answers of the model's own provider.
pub struct Invoke;

/// Statuses that have exceptions of their own; `kind` is the name of the exception, which a header carries.
const STATUSES: &[Row] = &[
    row(400, "ValidationException", "The provided model identifier is invalid."),
    row(403, "AccessDeniedException", "You don't have access to the model with the specified model ID."),
    row(401, "UnrecognizedClientException", "The security token included in the request is invalid."),
    row(404, "ResourceNotFoundException", "Could not resolve the foundation model from the model identifier: {model}"),
    row(408, "ModelTimeoutException", "Model has timed out in processing the request. Try your request again."),
    row(424, "ModelErrorException", "The request failed due to an error while processing the model."),
    row(429, "ThrottlingException", "Too many requests, please wait before trying again."),
    row(500, "InternalServerException", "The system encountered an unexpected error during processing."),
    row(503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
];

const CONTEXT: Row =
    row(400, "ValidationException", "The model returned the following errors: Input is too long for requested model.");
const QUOTA: Row =
    row(400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account.");
const PER_DAY: Row = row(429, "ThrottlingException", "Too many tokens per day, please wait before trying again.");

const fn row(status: u16, kind: &'static str, message: &'static str) -> Row {
    Row { status, kind: Some(kind), code: None, param: None, message }
}

fn fault(problem: &Problem, exchange: &Exchange) -> Fault {
    let invalid = |message: String| Fault { message, ..CONTEXT.fault(exchange) };
    let mut fault = match problem {
        Problem::Status(status) => by_status(*status, exchange),
        Problem::Quota => QUOTA.fault(exchange),
        Problem::Daily => PER_DAY.fault(exchange),
        Problem::Context => CONTEXT.fault(exchange),
        Problem::TooLarge => invalid("The request is too large.".to_owned()),
        Problem::Malformed(Malformed::NotJson(detail)) => invalid(format!("Malformed input request: {detail}")),
        Problem::Malformed(Malformed::Missing(name)) => invalid(format!("{name} is required")),
        Problem::Test(kind, message) => invalid(format!("{kind}: {message}")),
    };
    if let Some(kind) = fault.kind {
        fault.headers.push(("x-amzn-errortype", kind.to_owned()));
    }
    fault
}

fn by_status(status: u16, exchange: &Exchange) -> Fault {
    if let Some(row) = STATUSES.iter().find(|row| row.status == status) {
        return row.fault(exchange);
    }
    let like = if status < 500 { 400 } else { 500 };
    Fault { status, ..by_status(like, exchange) }
}

impl Provider for Converse {
    fn request_id_header(&self) -> &'static str {
        "x-amzn-requestid"
    }

    fn request_id(&self, exchange: &Exchange) -> String {
        exchange.id.clone()
    }

    fn fault(&self, problem: &Problem, exchange: &Exchange) -> Fault {
        fault(problem, exchange)
    }

    fn error_body(&self, fault: &Fault, _: &Exchange) -> Value {
        json!({"message": fault.message})
    }

    fn answer_body(&self, answer: &Answer, exchange: &Exchange) -> Value {
        let content = if answer.deltas > 0 { json!([{"text": answer.text()}]) } else { json!([]) };
        json!({
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": stop_reason(answer),
            "usage": usage(answer, exchange),
            "metrics": {"latencyMs": 1},
        })
    }

    fn opening(&self, _: bool, _: &Exchange) -> Vec<String> {
        vec![event("messageStart", &json!({"role": "assistant"}))]
    }

    /// It has none.
    fn ping(&self) -> &'static str {
        ""
    }

    fn usual_pings(&self) -> usize {
        0
    }

    fn delta(&self, index: usize, _: &Exchange) -> String {
        event("contentBlockDelta", &json!({"delta": {"text": delta_text(index)}, "contentBlockIndex": 0}))
    }

    fn closing(&self, answer: &Answer, exchange: &Exchange) -> Vec<String> {
        let mut frames = Vec::new();
        if answer.deltas > 0 {
            frames.push(event("contentBlockStop", &json!({"contentBlockIndex": 0})));
        }
        frames.push(event("messageStop", &json!({"stopReason": stop_reason(answer)})));
        frames.push(event("metadata", &json!({"usage": usage(answer, exchange), "metrics": {"latencyMs": 1}})));
        frames
    }

    fn stream_error(&self) -> Value {
        json!({"message": "Bedrock is unable to process your request."})
    }

    fn event(&self, body: &Value) -> String {
        event("!serviceUnavailableException", body)
    }

    fn stream_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    fn frame(&self, text: String) -> Bytes {
        match text.split_once(' ').filter(|(_, body)| body.starts_with('{')) {
            Some((name, body)) => message(name, body).into(),
            None => text.into(),
        }
    }
}

impl Provider for Invoke {
    fn request_id_header(&self) -> &'static str {
        Converse.request_id_header()
    }

    fn request_id(&self, exchange: &Exchange) -> String {
        exchange.id.clone()
    }

    fn fault(&self, problem: &Problem, exchange: &Exchange) -> Fault {
        fault(problem, exchange)
    }

    fn error_body(&self, fault: &Fault, exchange: &Exchange) -> Value {
        Converse.error_body(fault, exchange)
    }

    fn answer_body(&self, answer: &Answer, exchange: &Exchange) -> Value {
        Anthropic.answer_body(answer, exchange)
    }

    fn opening(&self, has_content: bool, exchange: &Exchange) -> Vec<String> {
        Anthropic.opening(has_content, exchange).iter().map(|frame| chunk(frame)).collect()
    }

    fn ping(&self) -> &'static str {
        ""
    }

    fn usual_pings(&self) -> usize {
        0
    }

    fn delta(&self, index: usize, exchange: &Exchange) -> String {
        chunk(&Anthropic.delta(index, exchange))
    }

    fn closing(&self, answer: &Answer, exchange: &Exchange) -> Vec<String> {
        Anthropic.closing(answer, exchange).iter().map(|frame| chunk(frame)).collect()
    }

    fn stream_error(&self) -> Value {
        Converse.stream_error()
    }

    fn event(&self, body: &Value) -> String {
        Converse.event(body)
    }

    fn stream_type(&self) -> &'static str {
        Converse.stream_type()
    }

    fn frame(&self, text: String) -> Bytes {
        Converse.frame(text)
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer.finish {
        Finish::Stop => "end_turn",
        Finish::Filtered => "content_filtered",
        Finish::Truncated => "max_tokens",
    }
}

fn usage(answer: &Answer, exchange: &Exchange) -> Value {
    let (read, written) = (exchange.prompt.tokens(), answer.deltas);
    json!({"inputTokens": read, "outputTokens": written, "totalTokens": read + written})
}

/// An event on its way to [`message`]; a `!` before its name makes it an exception.
fn event(name: &str, body: &Value) -> String {
    format!("{name} {body}")
}

/// The data of an Anthropic frame, as an event of `InvokeModelWithResponseStream` carries it.
fn chunk(frame: &str) -> String {
    let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
    event("chunk", &json!({"bytes": base64(data.as_bytes())}))
}

/// One message of the event stream encoding: its lengths and their checksum, headers, payload, checksum.
fn message(name: &str, body: &str) -> Vec<u8> {
    let exception = name.strip_prefix('!');
    let (kind, named) = if exception.is_some() { ("exception", ":exception-type") } else { ("event", ":event-type") };
    let headers: Vec<u8> =
        [(named, exception.unwrap_or(name)), (":content-type", "application/json"), (":message-type", kind)]
            .iter()
            .flat_map(|(name, value)| header(name, value))
            .collect();
    let total = 12 + headers.len() + body.len() + 4;
    let mut out = Vec::with_capacity(total);
    out.extend(number(total));
    out.extend(number(headers.len()));
    out.extend(crc32(&out).to_be_bytes());
    out.extend(headers);
    out.extend(body.as_bytes());
    out.extend(crc32(&out).to_be_bytes());
    out
}

/// A header whose value is text, which is type 7.
fn header(name: &str, value: &str) -> Vec<u8> {
    let (short, long) = (u8::try_from(name.len()).unwrap_or(0), u16::try_from(value.len()).unwrap_or(0));
    [&[short][..], name.as_bytes(), &[7], &long.to_be_bytes(), value.as_bytes()].concat()
}

fn number(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes()
}

fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| bit(crc)))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let joined =
            three.iter().fold(0_usize, |joined, byte| joined << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[joined >> (18 - 6 * place) & 63];
            out.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{base64, crc32, message};

    #[test]
    fn the_published_checksums_and_digits() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let digits: Vec<_> = ["", "f", "fo", "foo", "foob"].iter().map(|text| base64(text.as_bytes())).collect();
        assert_eq!(digits, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn a_message_says_how_long_it_is() {
        let bytes = message("metadata", "{}");
        assert_eq!(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize, bytes.len());
        assert!(bytes.windows(8).any(|window| window == b"metadata"));
    }
}
