//! Plain answers and refusals, in both shapes.

use serde_json::{Value, json};

use crate::client::{ANTHROPIC, Ending, Line, OPENAI, Reply, ask, get, post, prompt, shared};

const ANSWER: &str = "The gateway answers: all is well, 世界é";

#[test]
fn an_openai_answer() {
    let reply = ask(OPENAI, "openai-answer", "three words here");
    let body = reply.json();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(reply.header("x-request-id").is_some_and(|id| id.starts_with("req_")));
    assert!(body["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")));
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["model"], "model-1");
    assert_eq!(body["choices"][0]["message"]["content"], ANSWER);
    assert_eq!(body["choices"][0]["message"]["role"], "assistant");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let usage = &body["usage"];
    assert_eq!(usage["prompt_tokens"], 10);
    assert_eq!(usage["completion_tokens"], 9);
    assert_eq!(usage["total_tokens"], 19);
}

#[test]
fn an_anthropic_answer() {
    let reply = ask(ANTHROPIC, "anthropic-answer", "three words here");
    let body = reply.json();
    assert_eq!(reply.status, 200);
    assert!(reply.header("request-id").is_some_and(|id| id.starts_with("req_")));
    assert!(body["id"].as_str().is_some_and(|id| id.starts_with("msg_")));
    assert_eq!(body["type"], "message");
    assert_eq!(body["content"][0]["text"], ANSWER);
    assert_eq!(body["stop_reason"], "end_turn");
    assert_eq!(body["usage"]["input_tokens"], 10);
    assert_eq!(body["usage"]["output_tokens"], 9);
}

#[test]
fn no_two_answers_have_the_same_id() {
    let id = |_| ask(OPENAI, "ids", "hi").json()["id"].to_string();
    let ids: std::collections::BTreeSet<_> = (0..5).map(id).collect();
    assert_eq!(ids.len(), 5);
}

/// Marker; status, type and code of `OpenAI`; status and type of Anthropic.
type Refusal = (&'static str, (u16, Value, Value), (u16, &'static str));

fn refusals() -> Vec<Refusal> {
    let invalid = || json!("invalid_request_error");
    let server = || json!("server_error");
    let limit = || json!("rate_limit_exceeded");
    vec![
        ("400", (400, invalid(), json!("decimal_above_max_value")), (400, "invalid_request_error")),
        ("401", (401, invalid(), json!("invalid_api_key")), (401, "authentication_error")),
        ("402", (402, invalid(), Value::Null), (402, "billing_error")),
        (
            "403",
            (403, json!("request_forbidden"), json!("unsupported_country_region_territory")),
            (403, "permission_error"),
        ),
        ("404", (404, invalid(), json!("model_not_found")), (404, "not_found_error")),
        ("408", (408, Value::Null, Value::Null), (408, "timeout_error")),
        ("409", (409, Value::Null, Value::Null), (409, "conflict_error")),
        ("418", (418, invalid(), Value::Null), (418, "invalid_request_error")),
        ("429", (429, json!("requests"), limit()), (429, "rate_limit_error")),
        ("500", (500, server(), Value::Null), (500, "api_error")),
        ("503", (503, json!("service_unavailable_error"), json!("server_is_overloaded")), (503, "api_error")),
        ("529", (529, server(), Value::Null), (529, "overloaded_error")),
        ("599", (599, server(), Value::Null), (599, "api_error")),
        ("quota", (429, json!("insufficient_quota"), json!("insufficient_quota")), (402, "billing_error")),
        ("daily", (429, json!("requests"), limit()), (429, "rate_limit_error")),
        ("context", (400, invalid(), json!("context_length_exceeded")), (400, "invalid_request_error")),
    ]
}

#[test]
fn refusals_are_in_the_words_of_the_provider() {
    for (marker, openai, anthropic) in refusals() {
        let text = format!("please #[{marker}]");
        let reply = ask(OPENAI, "refusals-openai", &text);
        let error = reply.json()["error"].clone();
        let seen = (reply.status, error["type"].clone(), error["code"].clone());
        assert_eq!(seen, openai, "{marker}");
        assert!(!error["message"].as_str().unwrap_or_default().is_empty());
        assert!(reply.header("retry-after").is_none());

        let reply = ask(ANTHROPIC, "refusals-anthropic", &text);
        let body = reply.json();
        let kind = body["error"]["type"].as_str().unwrap_or_default();
        assert_eq!((reply.status, kind), anthropic, "{marker}");
        assert_eq!(body["type"], "error");
        assert_eq!(body["request_id"].as_str(), reply.header("request-id"));
        assert!(reply.header("retry-after").is_none());
    }
}

#[test]
fn a_refused_stream_is_refused_the_same_way() {
    let reply = post(OPENAI, "refused-stream", &prompt("#[500]", true));
    assert_eq!(reply.status, 500);
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[test]
fn a_daily_limit_says_when_it_comes_back() {
    let reply = ask(OPENAI, "daily", "#[daily]");
    let message = reply.json()["error"]["message"].to_string();
    assert!(message.contains("requests per day (RPD)"), "{message}");
    assert!(message.contains("Please try again in 7h12m0s."), "{message}");

    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let before = now();
    let reply = ask(ANTHROPIC, "daily", "#[daily]");
    let reset = reply.header("anthropic-ratelimit-unified-reset");
    let reset: u64 = reset.and_then(|text| text.parse().ok()).expect("seconds");
    assert!((before + 25_920..=now() + 25_920).contains(&reset), "{reset}");
}

#[test]
fn a_filter_cuts_a_success_short() {
    let body = ask(OPENAI, "filter", "#[filter]").json();
    assert_eq!(body["choices"][0]["finish_reason"], "content_filter");
    assert_eq!(body["choices"][0]["message"]["content"], "The gateway answers");
    let body = ask(ANTHROPIC, "filter", "#[filter]").json();
    assert_eq!(body["stop_reason"], "refusal");
    assert_eq!(body["stop_details"]["type"], "refusal");
}

#[test]
fn an_empty_answer_is_a_success_without_content() {
    let body = ask(OPENAI, "empty", "#[empty]").json();
    assert_eq!(body["choices"][0]["message"]["content"], "");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let body = ask(ANTHROPIC, "empty", "#[empty]").json();
    assert_eq!(body["content"], json!([]));
    assert_eq!(body["stop_reason"], "end_turn");
}

#[test]
fn a_proxy_answers_in_html() {
    let reply = ask(ANTHROPIC, "html", "#[html]");
    assert_eq!(reply.status, 502);
    assert_eq!(reply.header("content-type"), Some("text/html"));
    assert!(reply.text().contains("<h1>502 Bad Gateway</h1>"));
}

fn error_of(reply: &Reply) -> (u16, String, String) {
    let error = reply.json()["error"].clone();
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (reply.status, text("type"), text("message"))
}

#[test]
fn an_unknown_marker_is_a_mistake_of_the_test() {
    for path in [OPENAI, ANTHROPIC] {
        let (status, kind, message) = error_of(&ask(path, "unknown", "#[500,nope]"));
        assert_eq!((status, kind.as_str()), (400, "gateway_unknown_marker"));
        assert!(message.contains("#[500,nope]") && message.contains("retry-after=S"), "{message}");
    }
}

#[test]
fn a_stream_marker_without_a_stream_is_one_too() {
    for marker in ["sse-cut=1", "sse-error=1", "sse-stall=1", "sse-pings=1", "sse-slow=1"] {
        let (status, kind, _) = error_of(&ask(OPENAI, "no-stream", &format!("#[{marker}]")));
        assert_eq!((status, kind.as_str()), (400, "gateway_needs_stream"), "{marker}");
    }
}

#[test]
fn a_body_that_is_no_request_is_refused_in_the_shape_of_the_provider() {
    for path in [OPENAI, ANTHROPIC] {
        for body in ["{\"model\": ", "", "[]", r#"{"model": "m", "messages": []}"#] {
            let reply = post(path, "malformed", body);
            let (status, kind, _) = error_of(&reply);
            assert_eq!((status, kind.as_str()), (400, "invalid_request_error"), "{body}");
            assert_eq!(reply.json()["type"] == "error", path == ANTHROPIC);
        }
    }
}

#[test]
fn it_listens_on_loopback_only() {
    assert!(shared().starts_with("127.0.0.1:"));
}

#[test]
fn any_method_may_ask_and_says_so_in_its_query_or_its_body() {
    let any = |method: &str, path: &str, body: &str| {
        let mut line = Line::open();
        line.send(method, path, &[("x-drill-id", "any")], body.as_bytes());
        line.receive().expect("a response").status
    };
    assert_eq!(any("GET", "/any?q=%23%5B503,ok%5D", ""), 503);
    assert_eq!(any("DELETE", "/any?q=%23%5B503,ok%5D", ""), 200);
    assert_eq!(any("PUT", "/any", "not JSON #[418]"), 418);
    assert_eq!(any("PATCH", "/any?q=hello", "#[418]"), 200);
    assert_eq!(any("GET", "/any?q=%23%5Bnope%5D", ""), 400);
    let stats = get("/__stats?drill=any").json();
    let requests = &stats["drills"]["any"]["behaviours"]["503,ok"]["requests"];
    assert_eq!([&requests[0]["method"], &requests[1]["method"]], ["GET", "DELETE"]);
}

#[test]
fn any_answers_a_stream_where_its_query_asks_for_one() {
    let reply = get("/any?q=%23%5Bsse-cut=2%5D&stream=true");
    assert_eq!((reply.deltas().len(), reply.ending), (2, Ending::Cut));
}

#[test]
fn a_body_is_cut_before_the_length_it_announced() {
    for bytes in [0, 17] {
        let reply = get(&format!("/any?q=%23%5Bcut={bytes}%5D"));
        let announced: usize = reply.header("content-length").and_then(|text| text.parse().ok()).expect("a length");
        assert!(announced > 100);
        assert_eq!((reply.status, reply.ending), (200, Ending::Cut));
    }
}

#[test]
fn a_redirect_leads_back_to_its_own_address_once() {
    let address = "/any?q=%23%5Bredirect,503%5D&x=1";
    let reply = get(address);
    assert_eq!((reply.status, reply.header("location")), (307, Some(address)));
    assert_eq!(get(address).status, 503);
}

#[test]
fn a_bedrock_answer_and_its_refusals() {
    for (operation, text) in [("converse", "/output/message/content/0/text"), ("invoke", "/content/0/text")] {
        let path = format!("/model/model-1/{operation}");
        let drill = format!("bedrock-{operation}");
        let body = ask(&path, &drill, "three words here").json();
        assert_eq!(body.pointer(text), Some(&json!(ANSWER)));
        let limited = ask(&path, &drill, "#[429]");
        assert_eq!((limited.status, limited.header("x-amzn-errortype")), (429, Some("ThrottlingException")));
        assert!(limited.json()["message"].as_str().is_some_and(|message| message.starts_with("Too many requests")));
    }
}

#[test]
fn the_path_of_azure() {
    let reply = ask("/openai/deployments/model-1/chat/completions?api-version=1", "azure", "hi");
    assert_eq!(reply.json()["choices"][0]["message"]["content"], ANSWER);
}
