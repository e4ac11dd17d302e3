//! Streams, whole and broken, frame by frame.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{
    ANTHROPIC, Ending, Frame, GEMINI, GEMINI_STREAM, Line, OPENAI, RESPONSES, Reply, ask, post, prompt, stream, turns,
};

/// What the frames are, by the event's name or by what an `OpenAI` chunk has in it.
fn outline(frames: &[Frame]) -> Vec<String> {
    let word = |frame: &Frame| match frame.json() {
        _ if !frame.event.is_empty() => frame.event.to_owned(),
        None => frame.data.to_owned(),
        Some(data) if data["error"].is_object() => "error".to_owned(),
        Some(data) if data["candidates"].is_array() => match &data["candidates"][0]["finishReason"] {
            Value::Null => "content".to_owned(),
            reason => reason.to_string(),
        },
        Some(data) => match &data["choices"][0] {
            Value::Null => "usage".to_owned(),
            choice if choice["finish_reason"].is_string() => "finish".to_owned(),
            choice if choice["delta"]["role"].is_string() => "role".to_owned(),
            _ => "content".to_owned(),
        },
    };
    frames.iter().map(word).collect()
}

/// Repeats the words that come with a number: "a 2*b" is "a b b".
fn words(text: &str) -> Vec<String> {
    text.split(' ')
        .flat_map(|word| match word.split_once('*') {
            Some((times, word)) => vec![word.to_owned(); times.parse().expect("a number")],
            None => vec![word.to_owned()],
        })
        .collect()
}

#[test]
fn an_openai_stream() {
    let reply = stream(OPENAI, "stream", "hi");
    let content_type = reply.header("content-type").unwrap_or_default();
    assert!(content_type.starts_with("text/event-stream"));
    assert_eq!(reply.ending, Ending::Whole);
    let frames = reply.frames();
    let mut expected = words("role 9*content finish");
    expected.push("[DONE]".to_owned());
    assert_eq!(outline(&frames), expected);
    assert_eq!(reply.deltas().concat(), "The gateway answers: all is well, 世界é");
    let first = frames[0].json().expect("a chunk");
    assert_eq!(first["object"], "chat.completion.chunk");
    assert!(first.get("usage").is_none());
    let ids: Vec<_> = frames.iter().filter_map(Frame::json).collect();
    assert!(ids.iter().all(|chunk| chunk["id"] == first["id"]));
}

#[test]
fn an_openai_stream_with_its_usage() {
    let mut request: Value = serde_json::from_str(&prompt("hi", true)).expect("JSON");
    request["stream_options"] = json!({"include_usage": true});
    let reply = post(OPENAI, "stream-usage", &request.to_string());
    let frames = reply.frames();
    let mut expected = words("role 9*content finish usage");
    expected.push("[DONE]".to_owned());
    assert_eq!(outline(&frames), expected);
    assert_eq!(frames[0].json().map(|chunk| chunk["usage"].clone()), Some(Value::Null));
    let usage = frames[11].json().expect("a chunk")["usage"].clone();
    assert_eq!(usage["completion_tokens"], 9);
}

#[test]
fn an_anthropic_stream() {
    let reply = stream(ANTHROPIC, "stream", "hi");
    assert_eq!(reply.ending, Ending::Whole);
    let frames = reply.frames();
    let expected = "message_start content_block_start ping 9*content_block_delta content_block_stop message_delta \
                    message_stop";
    assert_eq!(outline(&frames), words(expected));
    assert_eq!(reply.deltas().concat(), "The gateway answers: all is well, 世界é");
    for frame in &frames {
        assert_eq!(frame.json().expect("JSON")["type"], frame.event);
    }
    let ending = frames[13].json().expect("JSON");
    assert_eq!(ending["delta"]["stop_reason"], "end_turn");
    assert_eq!(ending["usage"]["output_tokens"], 9);
}

#[test]
fn a_cut_stream_has_its_deltas_and_no_finish() {
    for (deltas, openai, anthropic) in [
        (0, "role", "message_start content_block_start ping"),
        (2, "role 2*content", "message_start content_block_start ping 2*content_block_delta"),
        (20, "role 20*content", "message_start content_block_start ping 20*content_block_delta"),
    ] {
        let marker = format!("#[sse-cut={deltas}]");
        for (path, expected) in [(OPENAI, openai), (ANTHROPIC, anthropic)] {
            let reply = stream(path, "cut", &marker);
            assert_eq!((reply.status, &reply.ending), (200, &Ending::Cut));
            assert_eq!(outline(&reply.frames()), words(expected));
        }
    }
}

#[test]
fn an_error_inside_a_stream() {
    let reply = stream(OPENAI, "error", "#[sse-error=2]");
    assert_eq!((reply.status, &reply.ending), (200, &Ending::Whole));
    let frames = reply.frames();
    assert_eq!(outline(&frames), words("role 2*content error"));
    let error = frames[3].json().expect("JSON")["error"].clone();
    assert_eq!(error["type"], "server_error");

    let reply = stream(ANTHROPIC, "error", "#[sse-error=0]");
    assert_eq!((reply.status, &reply.ending), (200, &Ending::Whole));
    let frames = reply.frames();
    assert_eq!(outline(&frames), words("message_start content_block_start ping error"));
    let error = frames[3].json().expect("JSON")["error"].clone();
    assert_eq!(error["type"], "overloaded_error");
}

#[test]
fn a_stalled_stream_stays_open_and_silent() {
    for path in [OPENAI, ANTHROPIC] {
        let mut line = Line::open();
        let body = prompt("#[sse-stall=3]", true);
        line.send("POST", path, &[("x-drill-id", "stall")], body.as_bytes());
        let reply = line.receive_until(|reply| reply.deltas().len() == 3).expect("a response");
        assert_eq!((reply.status, &reply.ending), (200, &Ending::Left));
        assert!(line.is_silent_for(Duration::from_millis(400)));
    }
}

#[test]
fn pings_come_before_the_first_content() {
    let started = Instant::now();
    let frames = stream(OPENAI, "pings", "#[sse-pings=3]");
    let outline_seen = outline(&frames.frames());
    assert_eq!(outline_seen[..5], ["role", ": keep-alive", ": keep-alive", ": keep-alive", "content"]);
    assert_eq!(outline_seen.last().map(String::as_str), Some("[DONE]"));
    assert!(started.elapsed() >= Duration::from_millis(300));

    let reply = stream(ANTHROPIC, "pings", "#[sse-pings=2]");
    let expected = words("message_start content_block_start 2*ping content_block_delta");
    assert_eq!(outline(&reply.frames())[..5], expected);
    assert_eq!(reply.deltas().len(), 9);
}

#[test]
fn a_slow_stream_pauses_between_deltas() {
    let started = Instant::now();
    let reply = stream(ANTHROPIC, "slow-stream", "#[sse-slow=50]");
    assert_eq!(reply.ending, Ending::Whole);
    assert_eq!(reply.deltas().len(), 9);
    assert!(started.elapsed() >= Duration::from_millis(450));
}

#[test]
fn a_whole_stream_has_as_many_deltas_as_are_asked_for() {
    for (path, frames_beside) in [(OPENAI, 3), (RESPONSES, 8), (ANTHROPIC, 6)] {
        let reply = stream(path, "whole", "#[sse-whole=3000]");
        assert_eq!(reply.ending, Ending::Whole);
        assert_eq!(reply.deltas().len(), 3000, "{path}");
        assert_eq!(reply.frames().len(), 3000 + frames_beside, "{path}");
    }
}

#[test]
fn filtered_and_empty_streams_finish() {
    let reply = stream(OPENAI, "filtered", "#[filter]");
    let finish = reply.frames()[4].json().expect("JSON");
    assert_eq!(finish["choices"][0]["finish_reason"], "content_filter");
    let reply = stream(OPENAI, "empty", "#[empty]");
    let mut expected = words("role finish");
    expected.push("[DONE]".to_owned());
    assert_eq!(outline(&reply.frames()), expected);

    let reply = stream(ANTHROPIC, "filtered", "#[filter]");
    assert_eq!(reply.deltas().len(), 3);
    let ending = reply.frames()[7].json().expect("JSON");
    assert_eq!(ending["delta"]["stop_reason"], "refusal");
    let reply = stream(ANTHROPIC, "empty", "#[empty]");
    let expected = words("message_start ping message_delta message_stop");
    assert_eq!(outline(&reply.frames()), expected);
}

#[test]
fn frames_arrive_while_the_stream_goes_on() {
    let mut line = Line::open();
    let body = prompt("#[sse-slow=600000]", true);
    line.send("POST", OPENAI, &[("x-drill-id", "live")], body.as_bytes());
    let reply = line.receive_until(|reply| !reply.body.is_empty()).expect("a response");
    assert_eq!(outline(&reply.frames()), words("role"));
    assert!(line.is_silent_for(Duration::from_millis(150)));
}

const STREAMS: [&str; 4] = [OPENAI, RESPONSES, ANTHROPIC, GEMINI_STREAM];

#[test]
fn a_responses_stream() {
    let reply = stream(RESPONSES, "responses", "hi");
    assert_eq!(reply.ending, Ending::Whole);
    let expected = "response.created response.in_progress response.output_item.added response.content_part.added \
                    9*response.output_text.delta response.output_text.done response.content_part.done \
                    response.output_item.done response.completed";
    let frames = reply.frames();
    assert_eq!(outline(&frames), words(expected));
    let ended = frames[16].json().expect("JSON")["response"].clone();
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["usage"]["output_tokens"], 9);
    assert_eq!(ended["output"][0]["content"][0]["text"], "The gateway answers: all is well, 世界é");
    let whole = ask(RESPONSES, "responses", "hi").json();
    assert_eq!(whole["output"][0]["content"], ended["output"][0]["content"]);
    let short = ask(RESPONSES, "responses", "#[truncated]").json();
    assert_eq!(
        (&short["status"], &short["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
}

#[test]
fn a_gemini_stream() {
    let reply = stream(GEMINI_STREAM, "gemini", "hi");
    assert_eq!(reply.ending, Ending::Whole);
    let frames = reply.frames();
    assert_eq!(outline(&frames), words("9*content \"STOP\""));
    assert_eq!(frames[9].json().expect("JSON")["usageMetadata"]["candidatesTokenCount"], 9);
    let whole = ask(GEMINI, "gemini", "hi").json();
    assert_eq!(whole["candidates"][0]["content"]["parts"][0]["text"], reply.deltas().concat());
    assert_eq!(whole["modelVersion"], "model-1");
    let limited = ask(GEMINI, "gemini", "#[429]");
    assert_eq!((limited.status, &limited.json()["error"]["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
}

#[test]
fn every_stream_can_end_without_a_finish() {
    for path in STREAMS {
        let eof = stream(path, "eof", "#[sse-eof=2]");
        assert_eq!((&eof.ending, eof.deltas().len()), (&Ending::Whole, 2), "{path}");
        let whole = outline(&stream(path, "eof", "hi").frames());
        let seen = outline(&eof.frames());
        assert_eq!(seen, whole[..seen.len()], "{path}");
        let cut = stream(path, "eof", "#[sse-cut=2]");
        assert_eq!((&cut.ending, cut.deltas().len()), (&Ending::Cut, 2), "{path}");
        let void = stream(path, "eof", "#[sse-void]");
        assert_eq!((void.status, &void.ending, void.body.len()), (200, &Ending::Whole, 0), "{path}");
    }
}

#[test]
fn errors_inside_a_stream_come_in_three_forms() {
    for path in STREAMS {
        let [event, text, raw] = ["sse-error", "sse-error-text", "sse-error-raw"]
            .map(|name| stream(path, "forms", &format!("#[{name}=1]")).text().to_owned());
        assert!(text.ends_with("\n\ndata: upstream connect error or disconnect/reset before headers\n\n"), "{path}");
        let last = |text: &str| text.trim_end().rsplit("\n\n").next().expect("a frame").to_owned();
        assert!(last(&event).ends_with(&last(&raw)), "{path}");
        assert!(last(&raw).starts_with('{') && !last(&event).starts_with('{'), "{path}");
    }
}

#[test]
fn a_stream_that_starts_again_says_everything_once_more() {
    for path in STREAMS {
        let reply = stream(path, "again", "#[sse-again=2]");
        assert_eq!(reply.ending, Ending::Whole);
        assert_eq!(reply.deltas().concat(), "The gatewayThe gateway answers: all is well, 世界é", "{path}");
    }
}

#[test]
fn an_idle_stream_only_pings() {
    for (path, expected) in [
        (OPENAI, ["content", ": keep-alive", ": keep-alive", ": keep-alive"]),
        (ANTHROPIC, ["content_block_delta", "ping", "ping", "ping"]),
    ] {
        let mut line = Line::open();
        line.send("POST", path, &[("x-drill-id", "idle")], prompt("#[sse-idle=1]", true).as_bytes());
        let told = |reply: &Reply| {
            let seen = outline(&reply.frames());
            let content = seen.iter().position(|frame| frame == expected[0]);
            content.map_or(Vec::new(), |at| seen[at..].to_vec())
        };
        let reply = line.receive_until(|reply| told(reply).len() == expected.len()).expect("a response");
        assert_eq!(told(&reply), expected);
    }
}

#[test]
fn the_first_content_can_be_late() {
    let started = Instant::now();
    let reply = stream(OPENAI, "first", "#[sse-first=200]");
    assert_eq!(reply.deltas().len(), 9);
    assert!(started.elapsed() >= Duration::from_millis(200));
}

#[test]
fn truncated_streams_say_so() {
    for (path, expected) in [(OPENAI, "length"), (ANTHROPIC, "max_tokens"), (GEMINI_STREAM, "MAX_TOKENS")] {
        let reply = stream(path, "truncated", "#[truncated]");
        assert_eq!(reply.deltas().len(), 3, "{path}");
        assert!(reply.text().contains(&format!("\"{expected}\"")), "{path}");
    }
}

#[test]
fn an_answer_goes_on_from_what_the_assistant_has_said() {
    for path in STREAMS {
        let role = if path == GEMINI_STREAM { "model" } else { "assistant" };
        let said = |marker, text| post(path, "prefill", &turns(path, &[("user", marker), (role, text)], true));
        let reply = said("hi", "The gateway");
        assert_eq!(reply.deltas().concat(), " answers: all is well, 世界é", "{path}");
        let reply = said("#[sse-cut=2]", "The gateway");
        assert_eq!(reply.deltas().concat(), " answers:", "{path}");
        let reply = said("hi", "Something else");
        assert_eq!(reply.deltas().len(), 9, "{path}");
    }
}
