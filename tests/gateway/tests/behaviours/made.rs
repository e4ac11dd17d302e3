//! Answers that are made to measure: calls of tools, and JSON of a schema.

use serde_json::{Value, json};

use crate::client::{ANTHROPIC, OPENAI, post};

fn request(marker: &str, stream: bool) -> String {
    let fields = json!({"type": "object", "properties": {"word": {"type": "string"}}});
    json!({
        "model": "m", "stream": stream, "messages": [{"role": "user", "content": marker}],
        "tools": [{"type": "function", "function": {"name": "look_up", "parameters": fields}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": fields}},
    })
    .to_string()
}

#[test]
fn a_tool_is_called_with_what_it_takes() {
    let body = post(OPENAI, "made-call", &request("#[tool=1]", false)).json();
    let choice = &body["choices"][0];
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(call["function"], json!({"name": "look_up", "arguments": r#"{"word":"pause"}"#}));
    assert!(call["id"].as_str().is_some_and(|id| id.starts_with("call_")));
}

#[test]
fn an_answer_has_the_form_that_was_asked_for() {
    let body = post(OPENAI, "made-json", &request("#[json]", false)).json();
    assert_eq!(body["choices"][0]["message"]["content"], r#"{"word":"pause"}"#);
}

#[test]
fn both_can_be_streamed() {
    for (marker, place) in [("#[tool=1]", "/tool_calls/0/function/arguments"), ("#[json]", "/content")] {
        let reply = post(OPENAI, "made-streams", &request(marker, true));
        let chunks: Vec<Value> = reply.frames().iter().filter_map(crate::client::Frame::json).collect();
        let text: String = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"].pointer(place)?.as_str().map(str::to_owned))
            .collect();
        assert_eq!(text, r#"{"word":"pause"}"#);
        let finish = if marker == "#[json]" { "stop" } else { "tool_calls" };
        assert_eq!(chunks.last().expect("a chunk")["choices"][0]["finish_reason"], finish);
    }
}

#[test]
fn what_cannot_be_made_is_a_mistake_of_the_test() {
    let kind = |path, marker| {
        let reply = post(path, "made-mistakes", &request(marker, false));
        (reply.status, reply.json()["error"]["type"].clone())
    };
    assert_eq!(kind(OPENAI, "#[tool=2]"), (400, json!("gateway_needs_schema")));
    assert_eq!(kind(ANTHROPIC, "#[json]"), (400, json!("gateway_needs_chat")));
}
