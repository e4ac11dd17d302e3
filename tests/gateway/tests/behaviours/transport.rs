//! Below HTTP: resets, kept connections, large bodies; and what browsers, scripts and parents need.

use std::io::ErrorKind;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::client::{ANTHROPIC, Gateway, Line, OPENAI, ask, get, post, prompt, shared};

#[test]
fn a_reset_is_seen_as_a_reset() {
    for path in [OPENAI, ANTHROPIC] {
        for streaming in [false, true] {
            let mut line = Line::open();
            line.send("POST", path, &[("x-drill-id", "reset")], prompt("#[reset]", streaming).as_bytes());
            let fault = line.receive().expect_err("no response");
            assert_eq!(fault.kind(), ErrorKind::ConnectionReset);
        }
    }
    assert_eq!(ask(OPENAI, "reset", "fine").status, 200);
}

#[test]
fn a_reset_can_be_one_entry_of_a_list() {
    let mut line = Line::open();
    line.send("POST", OPENAI, &[("x-drill-id", "reset-list")], prompt("#[reset,ok]", false).as_bytes());
    assert!(line.receive().is_err());
    assert_eq!(ask(OPENAI, "reset-list", "#[reset,ok]").status, 200);
}

#[test]
fn a_connection_is_kept_after_answers_errors_and_streams() {
    let mut line = Line::open();
    for (text, streaming, status) in [
        ("hi", false, 200),
        ("#[500]", false, 500),
        ("hi", true, 200),
        ("#[sse-error=1]", true, 200),
        ("#[nope]", false, 400),
        ("#[html]", false, 502),
        ("hi", false, 200),
    ] {
        line.send("POST", OPENAI, &[("x-drill-id", "kept")], prompt(text, streaming).as_bytes());
        assert_eq!(line.receive().expect("a response").status, status, "{text}");
    }
}

#[test]
fn slow_means_five_seconds() {
    let started = Instant::now();
    assert_eq!(ask(OPENAI, "slow-5", "#[slow]").status, 200);
    assert!(started.elapsed() >= Duration::from_secs(5));
}

#[test]
fn a_body_may_have_16_mib_and_no_more() {
    let padding = "x".repeat((16 << 20) - 200);
    assert_eq!(ask(OPENAI, "large", &padding).status, 200);
    let padding = "x".repeat((16 << 20) + 1);
    for (path, kind) in [(OPENAI, "invalid_request_error"), (ANTHROPIC, "request_too_large")] {
        let reply = ask(path, "large", &padding);
        assert_eq!(reply.status, 413);
        assert_eq!(reply.json()["error"]["type"], kind);
    }
}

#[test]
fn browsers_may_ask_with_any_header() {
    let mut line = Line::open();
    let asked = "authorization,content-type,x-drill-id,x-stainless-lang";
    let headers = [
        ("origin", "http://localhost:1234"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", asked),
    ];
    line.send("OPTIONS", OPENAI, &headers, b"");
    let reply = line.receive().expect("a response");
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert_eq!(reply.header("access-control-allow-headers"), Some(asked));
    assert!(reply.header("access-control-allow-methods").is_some_and(|all| all.contains("POST")));
}

#[test]
fn browsers_may_read_every_response_and_its_hints() {
    let replies = [
        ask(OPENAI, "cors", "hi"),
        ask(ANTHROPIC, "cors", "#[retry-ms=5]"),
        ask(OPENAI, "cors", "#[html]"),
        post(OPENAI, "cors", &prompt("hi", true)),
        post(OPENAI, "cors", "{"),
        get("/__stats?drill=cors"),
        get("/nowhere"),
    ];
    for reply in replies {
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        let exposed = reply.header("access-control-expose-headers").unwrap_or_default();
        for name in ["date", "retry-after", "retry-after-ms", "x-should-retry", "request-id"] {
            assert!(exposed.split(", ").any(|header| header == name), "{name}");
        }
    }
}

#[test]
fn a_wrong_path_or_method_is_told_what_there_is() {
    let reply = get("/v1/models");
    assert_eq!((reply.status, reply.json()["error"]["type"].as_str()), (404, Some("gateway_unknown_path")));
    assert!(reply.text().contains(ANTHROPIC));
    let reply = get(OPENAI);
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    assert_eq!(post("/__stats", "", "").status, 405);
}

#[test]
fn a_query_does_not_change_the_path() {
    assert_eq!(post("/v1/messages?beta=true", "query", &prompt("hi", false)).status, 200);
}

#[test]
fn it_leaves_when_its_parent_does() {
    let mut gateway = Gateway::start();
    assert_ne!(gateway.address, shared());
    assert!(gateway.child.try_wait().expect("a state").is_none());
    drop(gateway.child.stdin.take());
    let status = gateway.child.wait().expect("an end");
    assert!(status.success());
}

#[test]
fn wrong_arguments_are_refused() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args(["--port", "many"])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--port many"));
}
