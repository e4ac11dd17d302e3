//! The shape of `OpenAI`'s responses. What it shares with chat completions, that file has.

use serde_json::{Value, json};

use crate::openai::{OpenAi, SERVER_ERROR};
use crate::provider::{Answer, Exchange, Fault, Finish, Problem, Provider, delta_text};

pub struct Responses;

impl Provider for Responses {
    fn request_id_header(&self) -> &'static str {
        OpenAi.request_id_header()
    }

    fn request_id(&self, exchange: &Exchange) -> String {
        OpenAi.request_id(exchange)
    }

    fn fault(&self, problem: &Problem, exchange: &Exchange) -> Fault {
        OpenAi.fault(problem, exchange)
    }

    fn error_body(&self, fault: &Fault, exchange: &Exchange) -> Value {
        OpenAi.error_body(fault, exchange)
    }

    fn answer_body(&self, answer: &Answer, exchange: &Exchange) -> Value {
        response(Some(answer), exchange)
    }

    fn opening(&self, has_content: bool, exchange: &Exchange) -> Vec<String> {
        let started = response(None, exchange);
        let mut events = vec![
            json!({"type": "response.created", "response": started}),
            json!({"type": "response.in_progress", "response": started}),
        ];
        if has_content {
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item("", exchange)}));
            events.push(part("response.content_part.added", "", exchange));
        }
        events.iter().map(|event| self.event(event)).collect()
    }

    fn ping(&self) -> &'static str {
        OpenAi.ping()
    }

    fn usual_pings(&self) -> usize {
        0
    }

    fn delta(&self, index: usize, exchange: &Exchange) -> String {
        self.event(&json!({
            "type": "response.output_text.delta", "item_id": item_id(exchange), "output_index": 0,
            "content_index": 0, "delta": delta_text(index), "logprobs": [],
        }))
    }

    fn closing(&self, answer: &Answer, exchange: &Exchange) -> Vec<String> {
        let text = answer.text();
        let mut events = Vec::new();
        if answer.deltas > 0 {
            events.push(json!({
                "type": "response.output_text.done", "item_id": item_id(exchange), "output_index": 0,
                "content_index": 0, "text": text, "logprobs": [],
            }));
            events.push(part("response.content_part.done", &text, exchange));
            events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item(&text, exchange)}));
        }
        let finish = if answer.finish == Finish::Stop { "response.completed" } else { "response.incomplete" };
        events.push(json!({"type": finish, "response": response(Some(answer), exchange)}));
        events.iter().map(|event| self.event(event)).collect()
    }

    fn stream_error(&self) -> Value {
        json!({"type": "error", "code": "server_error", "message": SERVER_ERROR, "param": null})
    }

    fn event(&self, body: &Value) -> String {
        let name = body["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {body}\n\n")
    }
}

fn response(answer: Option<&Answer>, exchange: &Exchange) -> Value {
    let incomplete = answer.and_then(|answer| match answer.finish {
        Finish::Stop => None,
        Finish::Filtered => Some("content_filter"),
        Finish::Truncated => Some("max_output_tokens"),
    });
    let status = match (answer, incomplete) {
        (None, _) => "in_progress",
        (Some(_), None) => "completed",
        (Some(_), Some(_)) => "incomplete",
    };
    let output = answer.filter(|answer| answer.deltas > 0).map(|answer| item(&answer.text(), exchange));
    json!({
        "id": format!("resp_{}", exchange.id),
        "object": "response",
        "created_at": exchange.epoch_seconds(),
        "model": exchange.prompt.model,
        "status": status,
        "error": null,
        "incomplete_details": incomplete.map(|reason| json!({"reason": reason})),
        "instructions": null,
        "metadata": {},
        "output": output.into_iter().collect::<Vec<_>>(),
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": answer.map(|answer| usage(answer, exchange)),
    })
}

fn usage(answer: &Answer, exchange: &Exchange) -> Value {
    let (input, output) = (exchange.prompt.tokens(), answer.deltas);
    json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + output,
    })
}

fn item(text: &str, exchange: &Exchange) -> Value {
    let status = if text.is_empty() { "in_progress" } else { "completed" };
    let content = if text.is_empty() { json!([]) } else { json!([text_part(text)]) };
    json!({"id": item_id(exchange), "type": "message", "role": "assistant", "status": status, "content": content})
}

fn item_id(exchange: &Exchange) -> String {
    format!("msg_{}", exchange.id)
}

fn part(kind: &str, text: &str, exchange: &Exchange) -> Value {
    json!({
        "type": kind, "item_id": item_id(exchange), "output_index": 0, "content_index": 0, "part": text_part(text),
    })
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
